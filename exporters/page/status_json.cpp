// SPDX-License-Identifier: Apache-2.0
// How is the daemon itself doing, what is not measured here, and why?
#include <algorithm>

#include "daemon/live/format.h"
#include "daemon/model/version.h"
#include "exporters/findings/findings.h"
#include "exporters/findings/findings_json.h"
#include "exporters/page/json.h"

namespace ssdpulse::page {
namespace {

/// What is missing, why, and what would change it, if anything.
struct Gap {
  std::string what;
  std::string why;
  std::string change = {};
};

constexpr Field<Gap> kGapFields[] = {
    {"what", kSentence, [](const Gap& gap) { return util::for_json(gap.what, util::kLongestSentence); }},
    {"why", kSentence, [](const Gap& gap) { return util::for_json(gap.why, util::kLongestSentence); }},
    {"change", kText, [](const Gap& gap) { return util::for_json(gap.change, util::kLongestSentence); },
     "Empty: nothing on this host would."},
};
constexpr Object<Gap> kGap{"gap", "", kGapFields};

/// The doctor's findings, as sentences.
void not_measured(const model::Snapshot& snapshot, std::vector<Gap>& gaps) {
  for (const model::Finding& one : doctor::examine(snapshot)) {
    if (one.verdict != model::Verdict::ok) {
      gaps.push_back({one.device.empty() ? one.found : one.who() + ": " + one.found, one.why, one.change});
    }
  }
}

void forgotten(const live::RecentPast& past, std::vector<Gap>& gaps) {
  const auto reach = past.ring().reach();
  if (reach.last - reach.first + 1 < live::Ring::kFrames && past.since() && reach.first > 0 &&
      reach.begin - *past.since() > std::chrono::seconds(2)) {
    gaps.push_back({"Seconds before " + live::format_clock(reach.begin),
                    "with so many busy devices, there is not enough memory for 15 minutes"});
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
    {"change", kText, [](const model::Finding& one) { return util::for_json(one.change, util::kLongestSentence); }},
    {"runbook", defined_as("runbook"),
     [](const model::Finding& one) {
       return one.id == "F1" ? "SsdpulseOnlineDiscardAndFstrim" : "SsdpulseAuditDanger";
     }},
};
constexpr Object<model::Finding> kAudit{"audit_finding", "", kAuditFields};

constexpr Field<model::SourceStatus> kSourceFields[] = {
    {"name", kText, [](const model::SourceStatus& source) { return source.name; }},
    {"controller", or_null(kText),
     [](const model::SourceStatus& source) { return source.controller.empty() ? Json() : Json(source.controller); },
     "null: it is of the host."},
    {"up", kFlag, [](const model::SourceStatus& source) { return source.up; }},
    {"reason", kText, [](const model::SourceStatus& source) { return util::for_json(source.reason); },
     "Why it is not up."},
    {"errors", map_of(kCount), [](const model::SourceStatus& source) { return source.errors; }, "By kind."},
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
};

constexpr Field<Status> kStatusFields[] = {
    {"version", kText, [](const Status&) { return model::kVersion; }},
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

constexpr Field<doctor::Findings> kDoctorFields[] = {
    {"findings", some_of(defined_as("finding")),
     [](const doctor::Findings& all) { return findings_json(all)["findings"]; }},
};
constexpr Object<doctor::Findings> kDoctor{"doctor",
                                           "/api/v1/doctor: every check of what is measured. What is well is ok; info "
                                           "cannot be changed here, or was wanted so.",
                                           kDoctorFields, Head::snapshot};

}  // namespace

Definitions status_definitions() { return {kGap, kAudit, kSource, kStatus, kDoctor}; }

Json status_json(const model::Snapshot& snapshot, const live::RecentPast& past) {
  std::vector<Gap> gaps;
  not_measured(snapshot, gaps);
  forgotten(past, gaps);
  Json answer = head_of(snapshot);
  kStatus.append_to(answer, {snapshot, std::move(gaps)});
  return answer;
}

Json doctor_json(const model::Snapshot& snapshot, const doctor::FindingAges& finding_ages) {
  Json answer = head_of(snapshot);
  kDoctor.append_to(answer, finding_ages.examine(snapshot));
  return answer;
}

}  // namespace ssdpulse::page
