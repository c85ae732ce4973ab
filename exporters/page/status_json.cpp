// SPDX-License-Identifier: Apache-2.0
// How is the daemon itself doing, what is not measured here, and why?
#include <algorithm>

#include "daemon/live/format.h"
#include "daemon/model/version.h"
#include "exporters/findings/findings.h"
#include "exporters/page/json.h"

namespace ssdpulse::page {
namespace {

/// What is missing, why, and what would change it, if anything.
class Gaps {
 public:
  void add(const std::string& what, const std::string& why, const std::string& change = "") {
    gaps_.push_back({{"what", util::for_json(what, util::kLongestSentence)},
                     {"why", util::for_json(why, util::kLongestSentence)},
                     {"change", util::for_json(change, util::kLongestSentence)}});
  }
  Json take() { return std::move(gaps_); }

 private:
  Json gaps_ = Json::array();
};

/// The doctor's findings, as sentences.
void not_measured(const model::Snapshot& snapshot, Gaps& gaps) {
  for (const model::Finding& one : doctor::examine(snapshot)) {
    if (one.verdict != model::Verdict::ok) {
      gaps.add(one.device.empty() ? one.found : one.who() + ": " + one.found, one.why, one.change);
    }
  }
}

void forgotten(const live::RecentPast& past, Gaps& gaps) {
  const auto reach = past.ring().reach();
  if (reach.last - reach.first + 1 < live::Ring::kFrames && past.since() && reach.first > 0 &&
      reach.begin - *past.since() > std::chrono::seconds(2)) {
    gaps.add("Seconds before " + live::format_clock(reach.begin),
             "with so many busy devices, there is not enough memory for 15 minutes");
  }
}

/// What is wrong permanently, not just for a moment.
Json findings_of(const model::Snapshot& snapshot) {
  Json findings = Json::array();
  if (snapshot.audit) {
    for (const model::Finding& one : *snapshot.audit) {
      const std::string where = one.device.empty() ? "" : util::for_json(one.who()) + ": ";
      findings.push_back({{"what", util::for_json(where + one.found + ": " + one.why + ".", util::kLongestSentence)},
                          {"evidence", util::for_json(findings::evidence_sentence(one), util::kLongestSentence)},
                          {"change", util::for_json(one.change, util::kLongestSentence)},
                          {"runbook", one.id == "F1" ? "SsdpulseOnlineDiscardAndFstrim" : "SsdpulseAuditDanger"}});
    }
  }
  return findings;
}

}  // namespace

Json status_json(const model::Snapshot& snapshot, const live::RecentPast& past) {
  Gaps gaps;
  not_measured(snapshot, gaps);
  forgotten(past, gaps);
  Json answer = head_of(snapshot);
  answer["version"] = model::kVersion;
  answer["started_at"] = snapshot.process.start_time_seconds;
  answer["latency_mode"] = snapshot.latency_mode;
  answer["missed_ticks"] = snapshot.missed_ticks;
  answer["not_measured"] = gaps.take();
  answer["findings"] = findings_of(snapshot);
  answer["sources"] = Json::array();
  for (const model::SourceStatus& source : snapshot.sources) {
    answer["sources"].push_back({{"name", source.name},
                                 {"controller", source.controller.empty() ? Json() : Json(source.controller)},
                                 {"up", source.up},
                                 {"reason", util::for_json(source.reason)},
                                 {"errors", Json(source.errors)}});
  }
  answer["kernel_features"] = Json::object();
  for (const auto& [feature, decision] : snapshot.kernel_features) {
    answer["kernel_features"][std::string(name(feature, model::kKernelFeatureNames))] =
        name(decision, model::kKernelDecisionNames);
  }
  return answer;
}

Json doctor_json(const model::Snapshot& snapshot, const doctor::FindingAges& finding_ages) {
  Json answer = head_of(snapshot);
  answer["findings"] = findings::to_json(finding_ages.examine(snapshot))["findings"];
  return answer;
}

}  // namespace ssdpulse::page
