// SPDX-License-Identifier: Apache-2.0
// Spikes, bursts and the page's first line.
#include <fmt/format.h>

#include "daemon/live/evidence_words.h"
#include "daemon/live/explanations.h"
#include "daemon/live/host_wait_words.h"
#include "daemon/model/incidents.h"
#include "exporters/page/json.h"

namespace ssdpulse::page {

namespace {

template <typename Value>
Json spike_tenants_json(const std::vector<model::SpikeTenant>& tenants, const char* what,
                        Value model::SpikeTenant::*value) {
  Json list = Json::array();
  for (const model::SpikeTenant& tenant : tenants) {
    list.push_back({{"tenant", util::for_json(tenant.name)}, {what, tenant.*value}});
  }
  return list;
}

}  // namespace

Json sentences_json(const std::vector<std::string>& sentences) {
  Json list = Json::array();
  for (const std::string& one : sentences) {
    list.push_back(util::for_json(one, util::kLongestSentence));
  }
  return list;
}

Json spike_json(const model::LatencySpike& spike, bool over, const std::vector<live::Burst>& bursts,
                std::optional<live::Load> load) {
  const double begin = seconds_of(spike.begin);
  const double duration = std::chrono::duration<double>(spike.duration).count();
  const auto operation = name(spike.operation);
  Json missing = Json::array();
  for (const std::string& what : spike.missing) {
    missing.push_back(util::for_json(what));
  }
  const auto explanation = live::explain(spike, bursts, over ? live::Tense::past : live::Tense::present, load);
  const auto evidence = live::evidence_words(spike);
  return {{"id", fmt::format("{}-{:.0f}", operation, begin * 1000)},
          {"operation", operation},
          {"cause", name(spike.cause, model::kSpikeCauseNames)},
          {"words", util::for_json(explanation.because, util::kLongestSentence)},
          {"short_words", util::for_json(live::short_words(spike, load))},
          {"begin", begin},
          {"end", over ? Json(begin + duration) : Json()},
          {"seconds", duration},
          {"peak_seconds", spike.peak_seconds},
          {"baseline_seconds", spike.baseline_seconds > 0 ? Json(spike.baseline_seconds) : Json()},
          {"excess_seconds", spike.excess_seconds},
          {"ios", spike.ios},
          {"evidence", sentences_json(evidence.decided)},
          {"ruled_out", sentences_json(evidence.ruled_out)},
          {"other", sentences_json(evidence.other)},
          {"missing", std::move(missing)},
          {"heaviest", spike_tenants_json(spike.heaviest, "bytes", &model::SpikeTenant::bytes)},
          {"slowed", spike_tenants_json(spike.slowed, "waited_seconds", &model::SpikeTenant::waited_seconds)},
          {"next", explanation.next},
          {"runbook", explanation.runbook}};
}

Json burst_json(const live::Burst& burst) {
  return {{"id",
           fmt::format("{}-{:.0f}", name(burst.trigger, model::kDiscardTriggerNames), seconds_of(burst.begin) * 1000)},
          {"trigger", name(burst.trigger, model::kDiscardTriggerNames)},
          {"begin", seconds_of(burst.begin)},
          {"end", burst.end ? Json(seconds_of(*burst.end)) : Json()},
          {"bytes", burst.bytes}};
}

Json wait_mark_json(const model::HostWait& wait, const model::Snapshot& now) {
  const auto words = live::host_wait_words(wait, now, wait.over ? live::Tense::past : live::Tense::present);
  const auto cause = name(wait.cause, model::kHostWaitCauseNames);
  return {{"id", util::for_json(fmt::format("{}-{:.0f}-{}-{}", cause, seconds_of(wait.begin) * 1000,
                                            util::for_json(wait.subject), wait.device))},
          {"cause", cause},
          {"words", util::for_json(words.what, util::kLongestSentence)},
          {"begin", seconds_of(wait.begin)},
          {"end", wait.over ? Json(seconds_of(end_of(wait))) : Json()},
          {"seconds", std::chrono::duration<double>(wait.duration).count()},
          {"next", words.next},
          {"runbook", live::kHostWaitRunbook}};
}

live::Situation situation_of(const model::Snapshot& snapshot, const live::RecentPast& past) {
  return {&snapshot, past.ended_spikes(),  past.bursts(),     past.since(), past.remembered_since(),
          {},        "no history is kept", past.ended_waits()};
}

namespace {

/// Null: the sentence is not about an incident.
Json incident_json(const std::optional<model::Incident>& incident, const std::vector<live::Burst>& bursts) {
  if (!incident) {
    return {};
  }
  Json spikes = Json::array();
  const live::Load load = live::load_of(*incident);
  for (const model::LatencySpike& spike : incident->spikes) {
    const bool over = !incident->going_on || incident->end - model::end_of(spike) > std::chrono::seconds(1);
    Json one = spike_json(spike, over, bursts, load);
    one["device"] = util::for_json(spike.device);
    spikes.push_back(std::move(one));
  }
  return {{"begin", seconds_of(incident->begin)},
          {"end", incident->going_on ? Json() : Json(seconds_of(incident->end))},
          {"spikes", std::move(spikes)}};
}

Json wait_json(const model::HostWait& wait) {
  Json evidence = Json::object();
  for (const auto& [what, value] : wait.evidence) {
    evidence[what] = value;
  }
  return {{"cause", name(wait.cause, model::kHostWaitCauseNames)},
          {"subject", util::for_json(wait.subject)},
          {"begin", seconds_of(wait.begin)},
          {"end", wait.over ? Json(seconds_of(end_of(wait))) : Json()},
          {"source", wait.file},
          {"command", wait.command.empty() ? Json() : Json(util::for_json(wait.command))},
          {"evidence", std::move(evidence)}};
}

}  // namespace

Json why_json(const live::Why& why, const std::vector<live::Burst>& bursts) {
  Json moment;
  if (why.moment) {
    moment = {{"coverage", model::name(why.moment->coverage, live::kCoverageNames)},
              {"begin", seconds_of(why.moment->begin)},
              {"step_seconds", std::chrono::seconds(why.moment->step).count()}};
  }
  return {{"verdict", model::name(why.verdict, live::kVerdictNames)},
          {"sentence", util::for_json(why.sentence, util::kLongestSentence)},
          {"next", why.next},
          {"runbook", why.runbook.empty() ? Json() : Json(why.runbook)},
          {"device", why.device.empty() ? Json() : Json(why.device)},
          {"operation", why.incident ? Json(name(why.incident->headline().operation)) : Json()},
          {"cause", why.wait       ? Json(name(why.wait->cause, model::kHostWaitCauseNames))
                    : why.incident ? Json(name(why.incident->headline().cause, model::kSpikeCauseNames))
                                   : Json()},
          {"culprit", why.culprit.empty() ? Json() : Json(util::for_json(why.culprit))},
          {"victim", why.victim.empty() ? Json() : Json(util::for_json(why.victim))},
          {"when", why.when ? Json(model::name(*why.when, live::kWhenNames)) : Json()},
          {"moment", std::move(moment)},
          {"incident", incident_json(why.incident, bursts)},
          {"wait", why.wait ? wait_json(*why.wait) : Json()}};
}

}  // namespace ssdpulse::page
