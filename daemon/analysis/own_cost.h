// SPDX-License-Identifier: Apache-2.0
// OwnCost: the share of all CPUs' time that the programs in the kernel take, and what other efforts would take.
//
// Runs are counted exactly; the cost of one was measured at the start, on stand-ins for the real tables. While the
// kernel accounts for programs (kernel.bpf_stats_enabled), its figure replaces the estimate, and the difference between
// the two corrects the estimate from then on. Pure: no clock, no I/O.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>

#include "daemon/model/own_cost.h"

namespace ssdpulse::analysis {

/// What happened since the last check.
struct Work {
  std::uint64_t issues = 0;       // runs of the issue program
  std::uint64_t completions = 0;  // runs of the completion program
  /// According to the kernel's own account, for all programs; 0 runs if it keeps none.
  std::uint64_t accounted_runs = 0;
  std::uint64_t accounted_ns = 0;
};

class OwnCost {
 public:
  /// By effort; absent if there is neither a measurement nor the kernel's account.
  using Ratios = std::array<std::optional<double>, model::kEfforts>;

  /// `cost`: absent if it could not be measured. `cpus`: of the host, at least 1.
  OwnCost(const std::optional<model::RunCost>& cost, unsigned cpus);

  /// `effort`: the one in force during `work`. `elapsed` is more than 0.
  [[nodiscard]] Ratios observe(const Work& work, std::chrono::nanoseconds elapsed, model::Effort effort);

 private:
  std::optional<model::RunCost> cost_;
  double cpus_;
  double correction_ = 1;
};

}  // namespace ssdpulse::analysis
