// SPDX-License-Identifier: Apache-2.0
#include "daemon/audit/rules/rules.h"

namespace ssdpulse::audit {
namespace {

constexpr double kSlow = 0.002;         // seconds: drives with power-loss protection stay far below
constexpr double kWaitingPerDay = 600;  // seconds

struct Commits {
  std::optional<double> mean_seconds;
  std::optional<double> seconds_per_day;
};

Commits commits_of(const Facts& facts, const std::string& name) {
  if (const DeviceEvidence* past = evidence_of(facts, name)) {
    const LatencyTotal all = latency_total(*past, {model::Latency::commit});
    return {all.mean(), past->per_day(all.seconds)};
  }
  const Distribution& all = facts.measured.device(name).commit_seconds;
  return {mean(all), facts.measured.per_day(all.sum)};
}

Finding commits(const Facts& facts, const DiskSettings& disk) {
  const auto [seconds, per_day] = commits_of(facts, disk.device.name);
  if (!disk.device.write_back_cache) {
    if (seconds.value_or(0) < kSlow || per_day.value_or(0) < kWaitingPerDay) {
      return ok("its cache needs no flushes");
    }
    Finding finding = info("its cache needs no flushes, as it says, yet commits are slow",
                           "they wait for something else, or it does flush: `ssdpulse why` during one");
    finding.evidence = {{"mean_commit_seconds", *seconds}, {"commit_seconds_per_day", *per_day}};
    return finding;
  }
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
  return weigh(facts, std::move(bad),
               {{"mean_commit_seconds", seconds, kSlow}, {"excess_seconds_per_day", per_day, kWaitingPerDay}});
}

}  // namespace

const Rule kN16{.id = "N16",
                .title = "Cost of commits",
                .limit = "commits take 2 ms on average, and 600 s a day in total",
                .source = "PostgreSQL, Reliability",
                .by_history = true,
                .of_disk = commits};

}  // namespace ssdpulse::audit
