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

/// Of the drive, or of one of its endurance groups, which may be worn differently.
struct Wear {
  bool spare_is_low = false;
  bool life_is_used_up = false;
};

Wear wear_of_groups(const MeasuredDrive& drive) {
  Wear worst;
  for (const auto& [number, group] : drive.endurance_groups) {
    const auto spare = group.available_spare_ratio;
    if (spare) {
      const auto threshold = group.available_spare_threshold_ratio;
      worst.spare_is_low = worst.spare_is_low || (threshold && *spare < *threshold);
      worst.life_is_used_up = worst.life_is_used_up || group.percentage_used_ratio.value_or(0) >= 1;
    }
  }
  return worst;
}

Finding wear(const Facts& facts, const DiskSettings& disk) {
  const std::string controller = drive_of(facts, disk);
  if (controller.empty()) {
    return not_applicable("wear is read only from NVMe drives");
  }
  const MeasuredDrive& drive = facts.measured.drive(controller);
  const auto used = drive.percentage_used_ratio;
  const auto spare = drive.available_spare_ratio;
  const auto threshold = drive.available_spare_threshold_ratio;
  const auto errors = drive.media_errors;
  if (!used || !spare) {
    return unknown("its wear", "no daemon has read it");
  }
  Finding finding =
      ok(fmt::format("{:.0f} % of its life is used, {:.0f} % of its spare is left", 100 * *used, 100 * *spare));
  finding.evidence = {{"used_ratio", *used}, {"spare_ratio", *spare}, {"media_errors", errors.value_or(0)}};
  const Wear groups = wear_of_groups(drive);
  for (std::size_t i = 0; i < drive.warnings.size(); ++i) {
    const model::DriveWarning& warning = model::kDriveWarnings[i];
    const bool low = warning.label == "available_spare" && ((threshold && *spare < *threshold) || groups.spare_is_low);
    if (low || drive.warnings[i].value_or(0) > 0) {
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
