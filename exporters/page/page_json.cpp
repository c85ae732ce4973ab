// SPDX-License-Identifier: Apache-2.0
#include "exporters/page/page_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "daemon/model/incident.h"
#include "daemon/spikes/host_wait_words.h"
#include "daemon/spikes/spike_words.h"

namespace ssdpulse::page {

double seconds_of(model::WallTime time) {
  return static_cast<double>(std::chrono::round<std::chrono::milliseconds>(time.time_since_epoch()).count()) / 1000;
}

Json rounded(double value) { return value == 0 ? 0.0 : std::stod(fmt::format("{:.4g}", value)); }

Json latency_of(std::size_t bucket) { return rounded(model::upper_bound_seconds(bucket)); }

Json bounds_json() {
  Json seconds = Json::array();
  for (std::size_t bucket = 0; bucket <= LATENCY_OVER_WORD; ++bucket) {
    seconds.push_back(latency_of(bucket));
  }
  return seconds;
}

Json quantile_of(const model::SparseHistogram& histogram, double share) {
  return histogram.empty() ? Json() : latency_of(model::quantile_bucket(histogram.words, share));
}

std::string heat_text(const model::SparseBuckets& buckets) {
  if (buckets.empty()) {
    return "";
  }
  const std::uint8_t first = buckets.front().first;
  std::string levels(static_cast<std::size_t>(buckets.back().first - first) + 1, '0');
  for (const auto& [bucket, ios] : buckets) {
    // An answer with two levels per octave is a third longer, and the eye sees no difference.
    levels[static_cast<std::size_t>(bucket - first)] = static_cast<char>('0' + std::bit_width(ios));
  }
  return fmt::format("{}:{}", first, levels);
}

std::optional<model::Operation> operation_in(const std::string& name) {
  return model::operation_named(name.empty() ? "read" : name, model::kLiveOperations);
}

std::string run_of(const model::Snapshot& snapshot) {
  return fmt::format("{:.2f}", snapshot.process.start_time_seconds);
}

Json head_of(const model::Snapshot& snapshot) {
  return {{"run", run_of(snapshot)}, {"snapshot", snapshot.number}, {"taken_at", seconds_of(snapshot.taken_at)}};
}

Json sentences_json(const std::vector<std::string>& sentences) {
  Json list = Json::array();
  for (const std::string& sentence : sentences) {
    list.push_back(util::for_json(sentence, util::kLongestSentence));
  }
  return list;
}

// Spikes, bursts and the page's first line.

namespace {

constexpr Field<model::SpikeTenant> kHeaviestFields[] = {
    {"tenant", kText, text_of<&model::SpikeTenant::name>},
    {"bytes", kCount, member_of<&model::SpikeTenant::bytes>},
};
constexpr Object<model::SpikeTenant> kHeaviest{"heaviest_tenant", "", kHeaviestFields};

constexpr Field<model::SpikeTenant> kSlowedFields[] = {
    {"tenant", kText, text_of<&model::SpikeTenant::name>},
    {"waited_seconds", kSeconds, member_of<&model::SpikeTenant::waited_seconds>},
};
constexpr Object<model::SpikeTenant> kSlowed{"slowed_tenant", "", kSlowedFields};

struct SpikeView {
  const model::LatencySpike& spike;
  bool over;
  std::optional<model::Load> load;
  spikes::Explanation explanation;
  spikes::EvidenceWords evidence;
  bool with_device;

  [[nodiscard]] double begin() const { return seconds_of(spike.begin); }
  [[nodiscard]] double seconds() const { return std::chrono::duration<double>(spike.duration).count(); }
  [[nodiscard]] std::string_view operation() const { return name(spike.operation); }
};

Json missing_of(const model::LatencySpike& spike) {
  Json missing = Json::array();
  for (const std::string& what : spike.missing) {
    missing.push_back(util::for_json(what));
  }
  return missing;
}

constexpr Field<SpikeView> kSpikeFields[] = {
    {"id", kText,
     [](const SpikeView& view) { return fmt::format("{}-{:.0f}", view.operation(), view.begin() * 1000); }},
    {"operation", one_of(model::kSpikeOperationNames), [](const SpikeView& view) { return view.operation(); }},
    {"cause", defined_as("spike_cause"),
     [](const SpikeView& view) { return name(view.spike.cause, model::kSpikeCauseNames); }},
    {"words", kText,
     [](const SpikeView& view) { return util::for_json(view.explanation.because, util::kLongestSentence); }},
    {"short_words", kText,
     [](const SpikeView& view) { return util::for_json(spikes::short_words(view.spike, view.load)); },
     "For a column: too much load by backup.service."},
    {"begin", kNumber, [](const SpikeView& view) { return view.begin(); }},
    {"end", or_null(kNumber),
     [](const SpikeView& view) { return view.over ? Json(view.begin() + view.seconds()) : Json(); },
     "null: it goes on."},
    {"seconds", kSeconds, [](const SpikeView& view) { return view.seconds(); }},
    {"peak_seconds", kSeconds, [](const SpikeView& view) { return view.spike.peak_seconds; },
     "p99 of the worst second."},
    {"baseline_seconds", or_null(kSeconds),
     [](const SpikeView& view) {
       return view.spike.baseline_seconds > 0 ? Json(view.spike.baseline_seconds) : Json();
     }},
    {"excess_seconds", kNumber, [](const SpikeView& view) { return view.spike.excess_seconds; },
     "That I/Os waited beyond the baseline, all together."},
    {"ios", kCount, [](const SpikeView& view) { return view.spike.ios; }, "Slower than the limit."},
    {"evidence", list_of(kText), [](const SpikeView& view) { return sentences_json(view.evidence.decided); },
     "What decided the cause."},
    {"ruled_out", list_of(kText), [](const SpikeView& view) { return sentences_json(view.evidence.ruled_out); },
     "Why it is not another cause."},
    {"other", list_of(kText), [](const SpikeView& view) { return sentences_json(view.evidence.other); },
     "Figures that decided nothing."},
    {"missing", list_of(kText), [](const SpikeView& view) { return missing_of(view.spike); },
     "What could not be known."},
    {"heaviest", list_of(defined_as("heaviest_tenant")),
     [](const SpikeView& view) { return kHeaviest.list(view.spike.heaviest); },
     "At most three tenants with most bytes, or most discarded where that is the cause."},
    {"slowed", list_of(defined_as("slowed_tenant")),
     [](const SpikeView& view) { return kSlowed.list(view.spike.slowed); },
     "At most three tenants whose I/Os waited longest in the device beyond their own baseline."},
    {"next", kText, [](const SpikeView& view) { return view.explanation.next; }, "What to do."},
    {"runbook", defined_as("runbook"), [](const SpikeView& view) { return view.explanation.runbook; }},
    {"device", may_be_absent(kText),
     [](const SpikeView& view) { return view.with_device ? Json(util::for_json(view.spike.device)) : absent(); },
     "Of an incident, which may be of several."},
};
constexpr Object<SpikeView> kSpike{"spike", "", kSpikeFields};

Json spike_json(const model::LatencySpike& spike, bool over, const std::vector<model::Burst>& bursts,
                std::optional<model::Load> load, bool with_device) {
  return kSpike({spike, over, load,
                 spikes::explain(spike, bursts, over ? spikes::Tense::past : spikes::Tense::present, load),
                 spikes::evidence_words(spike), with_device});
}

constexpr Field<model::Burst> kBurstFields[] = {
    {"id", kText,
     [](const model::Burst& burst) {
       return fmt::format("{}-{:.0f}", name(burst.trigger, model::kDiscardTriggerNames),
                          seconds_of(burst.begin) * 1000);
     }},
    {"trigger", one_of(model::kDiscardTriggerNames),
     [](const model::Burst& burst) { return name(burst.trigger, model::kDiscardTriggerNames); }},
    {"begin", kNumber, time_of<&model::Burst::begin>},
    {"end", or_null(kNumber),
     [](const model::Burst& burst) { return burst.end ? Json(seconds_of(*burst.end)) : Json(); }, "null: it goes on."},
    {"bytes", kCount, member_of<&model::Burst::bytes>},
};
constexpr Object<model::Burst> kBurst{"burst", "", kBurstFields};

struct WaitMark {
  const model::HostWait& wait;
  spikes::HostWaitWords words;
  bool past;         // of the history, which keeps the next
  bool clock_ahead;  // it was stamped by a clock that went back since
};

constexpr Field<WaitMark> kWaitMarkFields[] = {
    {"id", kText,
     [](const WaitMark& mark) {
       return util::for_json(fmt::format("{}-{:.0f}-{}-{}", name(mark.wait.cause, model::kHostWaitCauseNames),
                                         seconds_of(mark.wait.begin) * 1000, util::for_json(mark.wait.subject),
                                         mark.wait.device));
     }},
    {"cause", defined_as("host_wait_cause"),
     [](const WaitMark& mark) { return name(mark.wait.cause, model::kHostWaitCauseNames); }},
    {"words", kSentence, [](const WaitMark& mark) { return util::for_json(mark.words.what, util::kLongestSentence); }},
    {"begin", kNumber, [](const WaitMark& mark) { return seconds_of(mark.wait.begin); }},
    {"end", or_null(kNumber),
     [](const WaitMark& mark) { return mark.wait.over ? Json(seconds_of(end_of(mark.wait))) : Json(); },
     "null: it is going on."},
    {"seconds", kSeconds,
     [](const WaitMark& mark) { return std::chrono::duration<double>(mark.wait.duration).count(); }},
    {"next", kText, [](const WaitMark& mark) { return mark.words.next; }, "What to do."},
    {"runbook", defined_as("runbook"), [](const WaitMark&) { return spikes::kHostWaitRunbook; }},
    {"clock_ahead", may_be_absent(kFlag),
     [](const WaitMark& mark) { return mark.past ? Json(mark.clock_ahead) : absent(); },
     "Of the past: it was stamped by a clock that went back to an earlier time since."},
};
constexpr Object<WaitMark> kWaitMark{
    "wait",
    "What held up I/O above the drives: this device, a volume or file system on it, or the whole host. In the past, "
    "volumes and file systems of other devices, too.",
    kWaitMarkFields};

struct IncidentView {
  const model::Incident& incident;
  const std::vector<model::Burst>& bursts;
};

Json spikes_of(const IncidentView& view) {
  Json spikes = Json::array();
  const model::Incident& incident = view.incident;
  const model::Load load = spikes::load_of(incident);
  for (const model::LatencySpike& spike : incident.spikes) {
    const bool over = !incident.going_on || incident.end - model::end_of(spike) > std::chrono::seconds(1);
    spikes.push_back(spike_json(spike, over, view.bursts, load, true));
  }
  return spikes;
}

constexpr Field<IncidentView> kIncidentFields[] = {
    {"begin", kNumber, [](const IncidentView& view) { return seconds_of(view.incident.begin); }},
    {"end", or_null(kNumber),
     [](const IncidentView& view) { return view.incident.going_on ? Json() : Json(seconds_of(view.incident.end)); },
     "null: it is going on."},
    {"spikes", some_of(defined_as("spike")), [](const IncidentView& view) { return spikes_of(view); }},
};
constexpr Object<IncidentView> kIncident{"incident", "", kIncidentFields};

Json evidence_of(const model::HostWait& wait) {
  Json evidence = Json::object();
  for (const auto& [what, value] : wait.evidence) {
    evidence[what] = value;
  }
  return evidence;
}

constexpr Field<spikes::Moment> kMomentFields[] = {
    {"coverage", one_of(spikes::kCoverageNames),
     [](const spikes::Moment& moment) { return model::name(moment.coverage, spikes::kCoverageNames); }},
    {"begin", kNumber, time_of<&spikes::Moment::begin>},
    {"step_seconds", kCount, [](const spikes::Moment& moment) { return std::chrono::seconds(moment.step).count(); },
     "60, or 3600 where minutes are no longer kept."},
};
constexpr Object<spikes::Moment> kMoment{"moment", "", kMomentFields};

struct WhyView {
  const spikes::Why& why;
  const std::vector<model::Burst>& bursts;
};

constexpr Field<WhyView> kWaitFields[] = {
    {"cause", defined_as("host_wait_cause"),
     [](const WhyView& view) { return name(view.why.wait->cause, model::kHostWaitCauseNames); }},
    {"words", kSentence,
     [](const WhyView& view) { return util::for_json(view.why.wait_words, util::kLongestSentence); },
     "What holds up I/O: a sentence without time and full stop."},
    {"subject", kText, [](const WhyView& view) { return util::for_json(view.why.wait->subject); },
     "A volume, a mount point or whom a limit is set on; empty: the host."},
    {"begin", kNumber, [](const WhyView& view) { return seconds_of(view.why.wait->begin); }},
    {"end", or_null(kNumber),
     [](const WhyView& view) { return view.why.wait->over ? Json(seconds_of(end_of(*view.why.wait))) : Json(); },
     "null: it is going on."},
    {"source", kText, [](const WhyView& view) { return view.why.wait->file; },
     "The kernel's file or function that says so."},
    {"command", or_null(kText), [](const WhyView& view) { return text_or_null(view.why.wait->command); },
     "That brought it about; null: not known."},
    {"evidence", map_of(kNumber), [](const WhyView& view) { return evidence_of(*view.why.wait); }},
};
constexpr Object<WhyView> kWait{"why_wait", "", kWaitFields};

Json cause_of(const spikes::Why& why) {
  return why.wait       ? Json(name(why.wait->cause, model::kHostWaitCauseNames))
         : why.incident ? Json(name(why.incident->headline().cause, model::kSpikeCauseNames))
                        : Json();
}

constexpr Field<WhyView> kWhyFields[] = {
    {"verdict", one_of(spikes::kVerdictNames),
     [](const WhyView& view) { return model::name(view.why.verdict, spikes::kVerdictNames); }},
    {"sentence", kSentence,
     [](const WhyView& view) { return util::for_json(view.why.sentence, util::kLongestSentence); }},
    {"summary", kSentence,
     [](const WhyView& view) {
       const std::string& summary = view.why.parts.summary;
       return util::for_json(summary.empty() ? view.why.sentence : summary, util::kLongestSentence);
     },
     "Of the sentence, what is slow, since when and why, or that nothing is; of a time that was asked for, all of it."},
    {"remarks", kText,
     [](const WhyView& view) { return util::for_json(view.why.parts.remarks, util::kLongestSentence); },
     "Of the sentence, what else is so now."},
    {"past", kText, [](const WhyView& view) { return util::for_json(view.why.parts.past, util::kLongestSentence); },
     "Of the sentence, what was, and is over."},
    {"next", kText, [](const WhyView& view) { return view.why.next; }, "What to do; empty: nothing."},
    {"runbook", defined_as("runbook"),
     [](const WhyView& view) { return view.why.runbook.empty() ? Json() : Json(view.why.runbook); }},
    {"device", or_null(kText),
     [](const WhyView& view) { return view.why.device.empty() ? Json() : Json(view.why.device); },
     "The slow one; of an incident that is over, too."},
    {"operation", or_null(one_of(model::kSpikeOperationNames)),
     [](const WhyView& view) {
       return view.why.incident ? Json(name(view.why.incident->headline().operation)) : Json();
     },
     "In which somebody waited most; like the next four, of the incident that the sentence is about, null without "
     "one."},
    {"cause", or_null(defined_as("cause")), [](const WhyView& view) { return cause_of(view.why); }},
    {"culprit", or_null(kText), [](const WhyView& view) { return text_or_null(view.why.culprit); },
     "The tenant that caused it; null: the cause has no sender, or it is not known."},
    {"victim", or_null(kText), [](const WhyView& view) { return text_or_null(view.why.victim); },
     "The tenant that was slowed most; null: not known."},
    {"when", or_null(one_of(spikes::kWhenNames)),
     [](const WhyView& view) { return view.why.when ? Json(model::name(*view.why.when, spikes::kWhenNames)) : Json(); },
     "ended: within the last two minutes; then: at the time that was asked for."},
    {"moment", or_null(defined_as("moment")),
     [](const WhyView& view) { return view.why.moment ? kMoment(*view.why.moment) : Json(); },
     "null: of now. Else the minute that is spoken of, what is known of it, and how long a time the figures are of "
     "that the history has of then."},
    {"incident", or_null(defined_as("incident")),
     [](const WhyView& view) {
       return view.why.incident ? kIncident({*view.why.incident, view.bursts}) : Json();
     },
     "The slow time that the sentence is about, with the spikes of its operations and drives; the first one is what it "
     "is named by."},
    {"wait", or_null(defined_as("why_wait")), [](const WhyView& view) { return view.why.wait ? kWait(view) : Json(); },
     "What holds up I/O above the drives, if the sentence is about that."},
};
constexpr Object<WhyView> kWhy{"why", "The first line.", kWhyFields};

constexpr Field<WhyView> kWhyAnswerFields[] = {
    {"why", defined_as("why"), [](const WhyView& view) { return kWhy(view); }},
};
constexpr Object<WhyView> kWhyAnswer{
    "why_answer", "/api/v1/why, of now or of the minute that holds at=SECONDS, by memory and history.",
    kWhyAnswerFields, Head::snapshot};

}  // namespace

Json spike_json(const model::LatencySpike& spike, bool over, const std::vector<model::Burst>& bursts,
                std::optional<model::Load> load) {
  return spike_json(spike, over, bursts, load, false);
}

Json burst_json(const model::Burst& burst) { return kBurst(burst); }

Json wait_mark_json(const model::HostWait& wait, const model::Snapshot& now, std::optional<bool> clock_ahead) {
  return kWaitMark({wait, spikes::host_wait_words(wait, now, wait.over ? spikes::Tense::past : spikes::Tense::present),
                    clock_ahead.has_value(), clock_ahead.value_or(false)});
}

Json why_json(const spikes::Why& why, const std::vector<model::Burst>& bursts) { return kWhy({why, bursts}); }

Json why_answer_json(const model::Snapshot& snapshot, const spikes::Why& why, const std::vector<model::Burst>& bursts) {
  return kWhyAnswer.answer(snapshot, {why, bursts});
}

Definitions mark_definitions() {
  return {kHeaviest, kSlowed, kSpike, kBurst, kWaitMark, kIncident, kWait, kMoment, kWhy, kWhyAnswer};
}

}  // namespace ssdpulse::page
