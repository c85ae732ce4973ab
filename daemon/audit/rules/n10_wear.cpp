// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "daemon/audit/rules/rules.h"

namespace ssdpulse::audit {
namespace {

Finding wear(const Facts& facts, const DiskSettings& disk) {
  if (disk.controller_name.empty()) {
    return not_applicable("wear is read only from NVMe drives");
  }
  const Measurements::Labels drive{{"controller", disk.controller_name}};
  const auto used = facts.measured.sum("ssdpulse_nvme_percentage_used_ratio", drive);
  const auto spare = facts.measured.sum("ssdpulse_nvme_available_spare_ratio", drive);
  const auto threshold = facts.measured.sum("ssdpulse_nvme_available_spare_threshold_ratio", drive);
  const auto warnings = facts.measured.sum("ssdpulse_nvme_critical_warning", drive);
  const auto errors = facts.measured.sum("ssdpulse_nvme_media_errors_total", drive);
  if (!used || !spare) {
    return unknown("its wear", "no daemon has read it");
  }
  Finding finding =
      ok(fmt::format("{:.0f} % of its life is used, {:.0f} % of its spare is left", 100 * *used, 100 * *spare));
  finding.evidence = {{"used_ratio", *used}, {"spare_ratio", *spare}, {"media_errors", errors.value_or(0)}};
  const bool low = threshold && *spare < *threshold;
  if (low || warnings.value_or(0) > 0 || *used >= 1) {
    finding.verdict = Verdict::danger;
    finding.why = low ? "its spare is below what it needs: it may become read-only"
                      : (*used >= 1 ? "its rated life is used up" : "it reports a critical warning");
  } else if (errors.value_or(0) > 0) {
    finding.verdict = Verdict::advise;
    finding.why = "it has lost data that it had accepted";
  } else {
    return finding;
  }
  finding.change = "replace it";
  finding.risk = "copying reads all of it; have a backup first";
  return finding;
}

}  // namespace

const Rule kN10{.id = "N10",
                .title = "Wear, spare and warnings",
                .limit = "an unrecovered error; danger: it warns, its spare is too low or its life is used up",
                .source = "NVM Express Base, SMART / Health Information",
                .days = 0,
                .of_disk = wear};

}  // namespace ssdpulse::audit
