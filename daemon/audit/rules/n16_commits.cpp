// SPDX-License-Identifier: Apache-2.0
#include "daemon/audit/rules/rules.h"

namespace ssdpulse::audit {
namespace {

constexpr double kSlow = 0.002;         // seconds: what drives with power-loss protection stay far below
constexpr double kWaitingPerDay = 600;  // seconds

Finding commits(const Facts& facts, const DiskSettings& disk) {
  if (!disk.device.write_back_cache) {
    return ok("its cache needs no flushes");
  }
  const Measurements::Labels all{{"device", disk.device.name}, {"operation", "commit"}};
  const auto seconds = mean(facts, "ssdpulse_io_latency_seconds", all);
  if (!seconds) {
    return unknown("what a commit costs", "none was measured");
  }
  Finding bad =
      info("each commit waits for the drive's cache", "its cache is volatile: a flush writes it to the flash");
  if (*seconds < kSlow) {
    Finding finding = ok("commits are fast");
    finding.evidence = {{"mean_commit_seconds", *seconds}};
    return finding;
  }
  bad.change = "a drive with power-loss protection for what commits often; never barrier=0";
  bad.risk = "its price";
  return weigh(
      facts, std::move(bad),
      {{"mean_commit_seconds", seconds, kSlow},
       {"excess_seconds_per_day", facts.measured.per_day("ssdpulse_io_latency_seconds_sum", all), kWaitingPerDay}});
}

}  // namespace

const Rule kN16{.id = "N16",
                .title = "Cost of commits",
                .limit = "a commit takes 2 ms on average, all together 600 s a day",
                .source = "PostgreSQL, Reliability",
                .of_disk = commits};

}  // namespace ssdpulse::audit
