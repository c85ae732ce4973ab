// SPDX-License-Identifier: Apache-2.0
#include "daemon/audit/rules/rules.h"

namespace ssdpulse::audit {
namespace {

constexpr double kHarm = 1.2;  // p99 during log reads, relative to the rest

Finding ourselves(const Facts& facts, const DiskSettings& disk) {
  const std::string drive = drive_of(facts, disk);
  if (drive.empty()) {
    return not_applicable("no log pages are read of it");
  }
  const auto effect = facts.measured.drive(drive).log_read_latency_effect_ratio;
  if (!effect) {
    return unknown("what reading its log pages costs", "too few I/Os have been compared, or no daemon answers");
  }
  if (*effect < kHarm) {
    Finding finding = ok("reading its log pages costs nothing");
    finding.evidence = {{"p99_during_log_reads_ratio", *effect}};
    return finding;
  }
  Finding bad = info("reading its log pages slows it down", "the drive stops for them");
  bad.change = "raise nvme.poll_interval in /etc/ssdpulse/ssdpulse.yaml; then systemctl reload ssdpulse";
  bad.undo = "the former interval";
  bad.risk = "wear and temperature are seen less often";
  return weigh(facts, std::move(bad), {{"p99_during_log_reads_ratio", effect, kHarm}});
}

}  // namespace

const Rule kF21{.id = "F21",
                .title = "What reading log pages costs",
                .limit = "p99 of reads and writes while log pages are read is 20 % above the rest",
                .source = "ssdpulse, ssdpulse_nvme_log_read_latency_effect_ratio",
                .of_disk = ourselves};

}  // namespace ssdpulse::audit
