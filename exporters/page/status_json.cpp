// SPDX-License-Identifier: Apache-2.0
#include "exporters/page/status_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "daemon/advice/cost_parts.h"
#include "daemon/base/figure_text.h"
#include "daemon/model/version.h"
#include "exporters/page/page_json.h"
#include "exporters/terminal/finding_text.h"
#include "exporters/words/page.h"

namespace ssdpulse::page {
namespace {

double floored_seconds(std::chrono::system_clock::time_point time) {
  return static_cast<double>(std::chrono::floor<std::chrono::milliseconds>(time.time_since_epoch()).count()) / 1000;
}

std::string text_in(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::optional<double> number_in(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
}

std::optional<model::Finding> finding_in(const nlohmann::json& object) {
  if (!object.is_object()) {
    return std::nullopt;
  }
  const auto* const known =
      std::find(model::kVerdictNames.begin(), model::kVerdictNames.end(), text_in(object, "verdict"));
  if (known == model::kVerdictNames.end()) {
    return std::nullopt;
  }
  model::Finding one;
  one.id = text_in(object, "id");
  one.verdict = static_cast<model::Verdict>(known - model::kVerdictNames.begin());
  one.device = text_in(object, "device");
  one.title = text_in(object, "title");
  one.found = text_in(object, "found");
  one.why = text_in(object, "why");
  if (const auto evidence = object.find("evidence"); evidence != object.end() && evidence->is_object()) {
    for (const auto& [name, value] : evidence->items()) {
      if (value.is_number()) {
        one.evidence.emplace(name, value.get<double>());
      }
    }
  }
  one.change = text_in(object, "change");
  one.persistent = text_in(object, "persistent");
  one.undo = text_in(object, "undo");
  one.risk = text_in(object, "risk");
  one.source = text_in(object, "source");
  one.proof = text_in(object, "proof");
  one.excess_seconds_per_day = number_in(object, "excess_seconds_per_day");
  one.wear_bytes_per_day = number_in(object, "wear_bytes_per_day");
  one.observed_seconds = number_in(object, "observed_seconds");
  const auto* observer =
      std::find(model::kObserverNames.begin(), model::kObserverNames.end(), text_in(object, "observed_by"));
  if (observer != model::kObserverNames.end()) {
    one.observer = static_cast<model::Observer>(observer - model::kObserverNames.begin());
  }
  constexpr double kFarthest = 1e10;  // seconds; no clock shows a time beyond it
  if (const auto since = number_in(object, "since"); since && *since > -kFarthest && *since < kFarthest) {
    one.since = std::chrono::system_clock::time_point(
        std::chrono::duration_cast<std::chrono::system_clock::duration>(std::chrono::duration<double>(*since)));
  }
  return one;
}

// How the daemon itself is doing; what is not measured here, and why.

/// What is missing, why, and what would change it, if anything.
struct Gap {
  std::string what;
  std::string why;
  std::string change = {};
};

constexpr Field<Gap> kGapFields[] = {
    {"what", kSentence, sentence_of<&Gap::what>},
    {"why", kSentence, sentence_of<&Gap::why>},
    {"change", kText, sentence_of<&Gap::change>, "Empty: nothing on this host would."},
};
constexpr Object<Gap> kGap{"gap", "", kGapFields};

/// The doctor's findings, as sentences.
void add_failed_checks(const model::Snapshot& snapshot, std::vector<Gap>& gaps) {
  for (const model::Finding& one : advice::examine(snapshot)) {
    if (one.verdict != model::Verdict::ok) {
      gaps.push_back({one.device.empty() ? one.found : one.who() + ": " + one.found, one.why, one.change});
    }
  }
}

void add_short_memory(const history::RecentPast& past, std::vector<Gap>& gaps) {
  const auto reach = past.ring().reach();
  if (reach.last - reach.first + 1 < history::Ring::kFrames && past.since() && reach.first > 0 &&
      reach.begin - *past.since() > std::chrono::seconds(2)) {
    gaps.push_back(
        {fmt::format(words::page::kSecondsBefore, util::format_clock(reach.begin)), words::page::kShortMemory});
  }
}

constexpr Field<model::Finding> kAuditFields[] = {
    {"what", kText,
     [](const model::Finding& one) {
       const std::string where = one.device.empty() ? "" : util::for_json(one.who()) + ": ";
       return util::for_json(where + one.found + ": " + one.why + ".", util::kLongestSentence);
     }},
    {"evidence", kText,
     [](const model::Finding& one) {
       return util::for_json(terminal::evidence_sentence(one), util::kLongestSentence);
     }},
    {"change", kText, sentence_of<&model::Finding::change>},
    {"runbook", defined_as("runbook"),
     [](const model::Finding& one) {
       return one.id == "F1" ? "SsdpulseOnlineDiscardAndFstrim" : "SsdpulseAuditDanger";
     }},
};
constexpr Object<model::Finding> kAudit{"audit_finding", "", kAuditFields};

constexpr Field<model::SourceStatus> kSourceFields[] = {
    {"name", kText, member_of<&model::SourceStatus::name>},
    {"controller", or_null(kText), [](const model::SourceStatus& source) { return text_or_null(source.controller); },
     "null: it is of the host."},
    {"up", kFlag, member_of<&model::SourceStatus::up>},
    {"reason", kText, text_of<&model::SourceStatus::reason>, "Why it is not up."},
    {"errors", map_of(kCount), member_of<&model::SourceStatus::errors>, "By kind."},
};
constexpr Object<model::SourceStatus> kSource{"source", "", kSourceFields};

Json kernel_features_of(const model::Snapshot& snapshot) {
  Json features = Json::object();
  for (const auto& [feature, decision] : snapshot.kernel_features) {
    features[std::string(name(feature, model::kKernelFeatureNames))] = name(decision, model::kKernelDecisionNames);
  }
  return features;
}

struct Status {
  const model::Snapshot& snapshot;
  std::vector<Gap> gaps;
  const std::string& host;
};

constexpr Field<Status> kStatusFields[] = {
    {"version", kText, [](const Status&) { return model::kVersion; }},
    {"host", or_null(kText), [](const Status& status) { return text_or_null(status.host); },
     "As the host calls itself; null: it has no name."},
    {"started_at", kNumber, [](const Status& status) { return status.snapshot.process.start_time_seconds; }},
    {"latency_mode", kText, [](const Status& status) { return status.snapshot.latency_mode; }},
    {"missed_ticks", kCount, [](const Status& status) { return status.snapshot.missed_ticks; }},
    {"not_measured", list_of(defined_as("gap")), [](const Status& status) { return kGap.list(status.gaps); }},
    {"findings", list_of(defined_as("audit_finding")),
     [](const Status& status) { return status.snapshot.audit ? kAudit.list(*status.snapshot.audit) : Json::array(); },
     "What is wrong permanently, not just for a moment."},
    {"sources", list_of(defined_as("source")),
     [](const Status& status) { return kSource.list(status.snapshot.sources); }},
    {"kernel_features", map_of(kText), [](const Status& status) { return kernel_features_of(status.snapshot); },
     "What this kernel offers, as in ssdpulse_kernel_feature_info."},
};
constexpr Object<Status> kStatus{"status", "/api/v1/status: the daemon itself, and what is not measured here, and why.",
                                 kStatusFields, Head::snapshot};

constexpr Field<advice::Findings> kDoctorFields[] = {
    {"findings", some_of(defined_as("finding")),
     [](const advice::Findings& all) { return findings_json(all)["findings"]; }},
};
constexpr Object<advice::Findings> kDoctor{"doctor",
                                           "/api/v1/doctor: every check of what is measured. What is well is ok; info "
                                           "cannot be changed here, or was wanted so.",
                                           kDoctorFields, Head::snapshot};

constexpr Field<advice::CostPart> kCostPartFields[] = {
    {"name", kText, member_of<&advice::CostPart::name>},
    {"tells", kText, member_of<&advice::CostPart::tells>, "What would not be known without it."},
    {"change", kText, member_of<&advice::CostPart::change>,
     "Of the configuration: it switches the part off, or makes it cheaper. Empty: none does."},
    {"off", kText, member_of<&advice::CostPart::off>, "Why it costs nothing now. Empty: it is on."},
    {"of", kText, member_of<&advice::CostPart::of>, "The part whose figures include these. Empty: none."},
    {"known_by", one_of(advice::kCostSourceNames),
     [](const advice::CostPart& part) { return model::name(part.source, advice::kCostSourceNames); },
     "estimate: runs, counted, times what one costs, estimated at the start; account: the kernel's own; account_share: "
     "a share of that, as measured on another machine; elsewhere: I/Os, counted, times what one cost on another "
     "machine; scheduler: CPU time of the daemon's threads."},
    {"at_most", kFlag, member_of<&advice::CostPart::at_most>, "The figures are upper bounds."},
    {"runs_per_second", or_null(kNumber), member_of<&advice::CostPart::runs_per_second>},
    {"ns_per_run", or_null(kNumber), member_of<&advice::CostPart::ns_per_run>, "Processor time."},
    {"cpu_ratio", or_null(kNumber), member_of<&advice::CostPart::cpu_ratio>, "Of the time of all CPUs."},
};
constexpr Object<advice::CostPart> kCostPart{"cost_part", "", kCostPartFields};

constexpr Field<advice::CostTotal> kCostTotalFields[] = {
    {"cpu_ratio", kNumber, member_of<&advice::CostTotal::cpu_ratio>},
    {"lower", kNumber, member_of<&advice::CostTotal::lower>},
    {"upper", kNumber, member_of<&advice::CostTotal::upper>},
};
constexpr Object<advice::CostTotal> kCostTotal{
    "cost_total", "Of the parts whose cost is known. lower and upper: an estimate may be off by a factor of 3.",
    kCostTotalFields};

Json total_or_null(const std::optional<advice::CostTotal>& total) { return total ? kCostTotal(*total) : Json(); }

constexpr Field<advice::CostReport> kCostFields[] = {
    {"seconds", kSeconds, member_of<&advice::CostReport::seconds>, "Until now. 0: nothing is known yet."},
    {"cpus", kCount, member_of<&advice::CostReport::cpus>},
    {"parts", list_of(defined_as("cost_part")),
     [](const advice::CostReport& report) { return kCostPart.list(report.parts); }},
    {"programs", or_null(defined_as("cost_total")),
     [](const advice::CostReport& report) { return total_or_null(report.programs); }, "In the kernel."},
    {"daemon_cpu_ratio", or_null(kNumber), member_of<&advice::CostReport::daemon>},
    {"total", or_null(defined_as("cost_total")),
     [](const advice::CostReport& report) { return total_or_null(report.total); }},
};
constexpr Object<advice::CostReport> kCost{"cost",
                                           "/api/v1/cost: what each part of the observation costs this host, in about "
                                           "the last minute.",
                                           kCostFields, Head::snapshot};

}  // namespace

Json findings_json(const std::vector<model::Finding>& findings) {
  Json list = Json::array();
  for (const model::Finding& one : findings) {
    Json evidence = Json::object();
    for (const auto& [name, value] : one.evidence) {
      evidence[name] = value;
    }
    list.push_back({{"id", one.id},
                    {"verdict", name(one.verdict, model::kVerdictNames)},
                    {"device", util::for_json(one.device)},
                    {"title", one.title},
                    {"found", one.found},
                    {"why", one.why},
                    {"evidence", std::move(evidence)},
                    {"change", one.change},
                    {"persistent", one.persistent},
                    {"undo", one.undo},
                    {"risk", one.risk},
                    {"source", one.source},
                    {"proof", one.proof},
                    {"since", one.since ? Json(floored_seconds(*one.since)) : Json()},
                    {"excess_seconds_per_day", json_of(one.excess_seconds_per_day)},
                    {"wear_bytes_per_day", json_of(one.wear_bytes_per_day)},
                    {"observed_seconds", json_of(one.observed_seconds)},
                    {"observed_by", name(one.observer, model::kObserverNames)}});
  }
  return {{"findings", std::move(list)}};
}

std::optional<std::vector<model::Finding>> findings_from(const nlohmann::json& answer) {
  const auto list = answer.find("findings");
  if (!answer.is_object() || list == answer.end() || !list->is_array()) {
    return std::nullopt;
  }
  std::vector<model::Finding> findings;
  for (const nlohmann::json& object : *list) {
    if (auto one = finding_in(object)) {
      findings.push_back(std::move(*one));
    }
  }
  return findings;
}

Definitions status_definitions() { return {kGap, kAudit, kSource, kStatus, kDoctor, kCostPart, kCostTotal, kCost}; }

Json status_json(const model::Snapshot& snapshot, const history::RecentPast& past, const std::string& host) {
  std::vector<Gap> gaps;
  add_failed_checks(snapshot, gaps);
  add_short_memory(past, gaps);
  return kStatus.answer(snapshot, {snapshot, std::move(gaps), host});
}

Json doctor_json(const model::Snapshot& snapshot, const advice::FindingAges& finding_ages) {
  return kDoctor.answer(snapshot, finding_ages.examine(snapshot));
}

Json cost_json(const model::Snapshot& snapshot) { return kCost.answer(snapshot, advice::cost_report(snapshot)); }

}  // namespace ssdpulse::page
