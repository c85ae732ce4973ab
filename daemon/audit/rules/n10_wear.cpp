// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "daemon/audit/rules/rules.h"
#include "daemon/model/drive_warnings.h"

namespace ssdpulse::audit {
namespace {

using model::DriveCondition;

constexpr DriveCondition kLostData{Verdict::advise, "it has lost data that it had accepted", "replace it",
                                   model::kRiskOfReplacing};

/// All conditions are named; the change is that of the most urgent one, of several the first.
void add(Finding& finding, const DriveCondition& condition) {
  const bool first = finding.why.empty();
  finding.why += (first ? "" : "; ") + std::string(condition.meaning);
  if (first || condition.verdict < finding.verdict) {
    finding.verdict = condition.verdict;
    finding.change = condition.advice;
    finding.risk = condition.risk;
  }
}

/// The drive's own, or that of one of its endurance groups.
bool warns(const Facts& facts, const std::string& controller, std::string_view warning) {
  double bits = 0;
  for (const char* metric : {"ssdpulse_nvme_critical_warning", "ssdpulse_nvme_endurance_groups_warning",
                             "ssdpulse_nvme_endurance_group_warning"}) {
    bits += facts.measured.sum(metric, {{"controller", controller}, {"warning", warning}}).value_or(0);
  }
  return bits > 0;
}

/// Of the drive, or of one of its endurance groups, which may be worn differently.
struct Wear {
  bool spare_is_low = false;
  bool life_is_used_up = false;
};

Wear wear_of_groups(const Facts& facts, const std::string& controller) {
  constexpr const char* kSpareOfGroup = "ssdpulse_nvme_endurance_group_available_spare_ratio";
  Wear worst;
  for (const std::string& group :
       facts.measured.values_of(kSpareOfGroup, "endurance_group", {{"controller", controller}})) {
    const Measurements::Labels one{{"controller", controller}, {"endurance_group", group}};
    const auto spare = facts.measured.sum(kSpareOfGroup, one);
    const auto threshold = facts.measured.sum("ssdpulse_nvme_endurance_group_available_spare_threshold_ratio", one);
    worst.spare_is_low = worst.spare_is_low || (spare && threshold && *spare < *threshold);
    worst.life_is_used_up =
        worst.life_is_used_up ||
        facts.measured.sum("ssdpulse_nvme_endurance_group_percentage_used_ratio", one).value_or(0) >= 1;
  }
  return worst;
}

Finding wear(const Facts& facts, const DiskSettings& disk) {
  const std::string controller = drive_of(facts, disk);
  if (controller.empty()) {
    return not_applicable("wear is read only from NVMe drives");
  }
  const Measurements::Labels drive{{"controller", controller}};
  const auto used = facts.measured.sum("ssdpulse_nvme_percentage_used_ratio", drive);
  const auto spare = facts.measured.sum("ssdpulse_nvme_available_spare_ratio", drive);
  const auto threshold = facts.measured.sum("ssdpulse_nvme_available_spare_threshold_ratio", drive);
  const auto errors = facts.measured.sum("ssdpulse_nvme_media_errors_total", drive);
  if (!used || !spare) {
    return unknown("its wear", "no daemon has read it");
  }
  Finding finding =
      ok(fmt::format("{:.0f} % of its life is used, {:.0f} % of its spare is left", 100 * *used, 100 * *spare));
  finding.evidence = {{"used_ratio", *used}, {"spare_ratio", *spare}, {"media_errors", errors.value_or(0)}};
  const Wear groups = wear_of_groups(facts, controller);
  for (const model::DriveWarning& warning : model::kDriveWarnings) {
    const bool low = warning.label == "available_spare" && ((threshold && *spare < *threshold) || groups.spare_is_low);
    if (low || warns(facts, controller, warning.label)) {
      add(finding, warning.condition);
    }
  }
  if (*used >= 1 || groups.life_is_used_up) {
    add(finding, model::kLifeUsedUp);
  }
  if (errors.value_or(0) > 0) {
    add(finding, kLostData);
  }
  return finding;
}

}  // namespace

const Rule kN10{.id = "N10",
                .title = "Wear, spare and warnings",
                .limit =
                    "an unrecovered error, its life is used up, or it warns of its temperature; danger: it warns of "
                    "anything else, or its spare is too low",
                .source = "NVM Express Base, SMART / Health Information",
                .days = 0,
                .of_disk = wear};

}  // namespace ssdpulse::audit
