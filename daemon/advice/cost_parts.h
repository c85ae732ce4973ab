// SPDX-License-Identifier: Apache-2.0
// CostReport: what each part of the observation costs this host, and what would switch it off: `ssdpulse doctor --cost`
// and /api/v1/cost. Pure functions of a Snapshot.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/base/complete.h"
#include "daemon/model/snapshot.h"

namespace ssdpulse::advice {

/// How far the estimate may be from the kernel's own account. system.test_cpu_limit holds it to that with --long; on
/// the shared machines of its other runs, to 10.
inline constexpr double kEstimateFactor = 3;

/// Where a figure comes from.
enum class CostSource : std::uint8_t {
  estimate,       // runs, counted, times what one costs, estimated at the start; a part's share of it is of overhead.md
  account,        // the kernel's account of the program
  account_share,  // a share, that of overhead.md, of the kernel's account of the program
  elsewhere,      // I/Os, counted, times what one cost on the machine of overhead.md
  scheduler,      // the kernel's account of the daemon's threads
  unknown,
};
inline constexpr auto kCostSourceNames = util::enumerator_names<CostSource>();

struct CostPart {
  std::string_view name = {};    // stable
  std::string_view tells = {};   // what would not be known without it
  std::string_view change = {};  // of the configuration, which switches it off or makes it cheaper; empty: none does
  std::string_view off = {};     // why it costs nothing now; empty: it is on
  std::string_view of = {};      // the part whose figures include these; empty: none
  CostSource source = CostSource::unknown;
  bool at_most = false;  // the figures are upper bounds
  // Each is absent where it is not known; all are if the part is off.
  std::optional<double> runs_per_second = {};  // of the host
  std::optional<double> ns_per_run = {};       // processor time
  std::optional<double> cpu_ratio = {};        // of all CPUs' time
};

/// What the parts whose cost is known take; the others are not in it. `lower` and `upper`: how far an estimate may be
/// off (kEstimateFactor); equal to cpu_ratio where the kernel keeps account.
struct CostTotal {
  double cpu_ratio = 0;  // of all CPUs' time
  double lower = 0;
  double upper = 0;
};

struct CostReport {
  double seconds = 0;  // the time of which this is, until now; 0: nothing is known yet, and the rest is empty
  unsigned cpus = 0;   // of the host
  std::vector<CostPart> parts;
  std::optional<CostTotal> programs;  // in the kernel; absent: what a run costs could not be measured
  std::optional<double> daemon;       // the daemon itself, of all CPUs' time
  std::optional<CostTotal> total;
};

CostReport cost_report(const model::Snapshot& snapshot);

}  // namespace ssdpulse::advice
