// SPDX-License-Identifier: Apache-2.0
// OwnCostFigures: what the programs in the kernel cost this host, and how much they do as a result (Effort).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "daemon/model/operation.h"
#include "daemon/util/complete.h"

namespace ssdpulse::model {

/// How much the programs do; each does less than the one before, and costs less.
enum class Effort : std::uint8_t {
  everything,   // as configured
  essentials,   // without tenants, paths, and samples for the flash models
  completions,  // also without issues of reads and writes, like latency.mode completion-only
  nothing,      // the programs are detached; until a restart
};
inline constexpr auto kEffortNames = util::names<Effort>({"everything", "essentials", "completions", "nothing"});
inline constexpr std::size_t kEfforts = kEffortNames.size();

/// What is not measured at this effort, in words.
constexpr std::string_view what_is_off(Effort effort) {
  switch (effort) {
    case Effort::everything:
      return "nothing";
    case Effort::essentials:
      return "tenants, paths and samples for the flash models";
    case Effort::completions:
      return "tenants, paths, samples, and all that needs the issue of an I/O, as in latency.mode completion-only";
    case Effort::nothing:
      return "everything that the block layer does, until the daemon is restarted";
  }
  return "";
}

/// Processor time of one run of each program, doing everything.
struct RunCost {
  double issue_ns = 0;  // 0: there is no such program (latency.mode completion-only)
  double completion_ns = 0;
};

/// What the snapshot reports about it.
struct OwnCostFigures {
  std::optional<double> ratio;  // of the time of all CPUs; absent: the cost of a run is unknown
  double limit = 0;             // of the same; 0: none
  Effort effort = Effort::everything;
  std::uint64_t steps_down = 0;  // changes of the effort since the start, like the next
  std::uint64_t steps_up = 0;
};

}  // namespace ssdpulse::model
