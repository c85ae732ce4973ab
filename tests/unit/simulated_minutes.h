// SPDX-License-Identifier: Apache-2.0
// Minutes of a disk whose true latencies are known: log-normal, with a level correlated from one minute to the next
// (AR(1)), bursts of slow I/O, and a load that follows the hour of the day and raises latencies slightly.
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/model/history_answers.h"

namespace ssdpulse::test {

struct SimulatedDisk {
  double ratio = 1;            // of every latency
  double load = 1;             // of every rate
  double correlation = 0.7;    // between the levels of one minute and the next
  double level_spread = 0.15;  // of the logarithm, between minutes
  double spread = 0.6;         // of the logarithm, within a minute
  double bursts_a_minute = 0.04;
  double burst_minutes = 3;  // mean
  double slow_share = 0.05;  // of a burst's I/Os, which take eight times as long
  double day_swing = 0.5;    // of the load, around its mean
  double ios = 30000;        // per minute
  double first_hour = 0;     // of the day
};

/// Only reads. Beginning at `start`, in minutes since the epoch.
std::vector<model::MinuteOf> simulate_minutes(const SimulatedDisk& disk, std::size_t minutes, std::uint64_t seed,
                                              std::int64_t start = 0);

}  // namespace ssdpulse::test
