// SPDX-License-Identifier: Apache-2.0
// Spikes, bursts and the page's first line.
#include <fmt/format.h>

#include "daemon/live/words.h"
#include "exporters/page/json.h"

namespace ssdpulse::page {

namespace {

template <typename Value>
Json spike_tenants_json(const std::vector<model::SpikeTenant>& tenants, const char* what,
                        Value model::SpikeTenant::*value) {
  Json list = Json::array();
  for (const model::SpikeTenant& tenant : tenants) {
    list.push_back({{"tenant", tenant.name}, {what, tenant.*value}});
  }
  return list;
}

}  // namespace

Json spike_json(const model::LatencySpike& spike, bool over, const std::vector<live::Burst>& bursts) {
  const double begin = seconds_of(spike.begin);
  const double duration = std::chrono::duration<double>(spike.duration).count();
  const auto operation = name(spike.operation, model::kSpikeOperationNames);
  Json missing = Json::array();
  for (const std::string& what : spike.missing) {
    missing.push_back(text(what));
  }
  return {{"id", fmt::format("{}-{:.0f}", operation, begin * 1000)},
          {"operation", operation},
          {"cause", name(spike.cause, model::kSpikeCauseNames)},
          {"words", text(live::cause_words(spike, bursts))},
          {"begin", begin},
          {"end", over ? Json(begin + duration) : Json()},
          {"seconds", duration},
          {"peak_seconds", spike.peak_seconds},
          {"usual_seconds", spike.baseline_seconds > 0 ? Json(spike.baseline_seconds) : Json()},
          {"excess_seconds", spike.excess_seconds},
          {"ios", spike.ios},
          {"evidence", live::evidence_sentences(spike)},
          {"missing", std::move(missing)},
          {"heaviest", spike_tenants_json(spike.heaviest, "bytes", &model::SpikeTenant::bytes)},
          {"slowed", spike_tenants_json(spike.slowed, "waited_seconds", &model::SpikeTenant::waited_seconds)},
          {"next", live::next_step(spike.cause)},
          {"runbook", live::runbook_of(spike.cause)}};
}

Json burst_json(const live::Burst& burst) {
  return {{"id",
           fmt::format("{}-{:.0f}", name(burst.trigger, model::kDiscardTriggerNames), seconds_of(burst.begin) * 1000)},
          {"trigger", name(burst.trigger, model::kDiscardTriggerNames)},
          {"begin", seconds_of(burst.begin)},
          {"end", burst.end ? Json(seconds_of(*burst.end)) : Json()},
          {"bytes", burst.bytes}};
}

live::Situation situation_of(const model::Snapshot& snapshot, const live::RecentPast& past) {
  return {&snapshot, past.ended_spikes(), past.bursts(), past.since(), past.remembered_since()};
}

Json why_json(const live::Why& why) {
  Json moment;
  if (why.moment) {
    moment = {{"coverage", model::name(why.moment->coverage, live::kCoverageNames)},
              {"begin", seconds_of(why.moment->begin)},
              {"step_seconds", std::chrono::seconds(why.moment->step).count()}};
  }
  return {{"verdict", model::name(why.verdict, live::kVerdictNames)},
          {"sentence", why.sentence},
          {"next", why.next},
          {"runbook", why.runbook.empty() ? Json() : Json(why.runbook)},
          {"device", why.device.empty() ? Json() : Json(why.device)},
          {"moment", std::move(moment)}};
}

}  // namespace ssdpulse::page
