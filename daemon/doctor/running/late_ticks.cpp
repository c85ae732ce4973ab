// SPDX-License-Identifier: Apache-2.0
#include "daemon/doctor/checks.h"

namespace ssdpulse::doctor {
namespace {

// One late second in a hundred only shows that the host was busy for a moment.
constexpr double kMaxMissedShare = 0.01;

Findings late_ticks(const model::Snapshot& snapshot) {
  constexpr std::uint64_t kMinTicks = 300;  // ticks; the start is busy
  const double ratio = snapshot.number < kMinTicks
                           ? 0
                           : static_cast<double>(snapshot.missed_ticks) / static_cast<double>(snapshot.number);
  if (ratio <= kMaxMissedShare) {
    return {};
  }
  auto one = finding(model::Verdict::info, "", "samples came late, so short spikes fall into longer intervals",
                     "the daemon did not get the CPU in time", "raise CPUWeight= of ssdpulse.service");
  one.evidence = {{"late_ticks", static_cast<double>(snapshot.missed_ticks)}, {"late_ratio", ratio}};
  return {one};
}

}  // namespace

const RunningCheck kLateTicks{"late-ticks", "every second was sampled in time", late_ticks};

}  // namespace ssdpulse::doctor
