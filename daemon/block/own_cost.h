// SPDX-License-Identifier: Apache-2.0
// OwnCost: what the programs in the kernel cost, and how much they may do; CostEstimate, CostLimit: how it decides.
// Pure: no clock, no I/O.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "daemon/model/kernel_programs.h"
#include "daemon/model/stage.h"

namespace ssdpulse::block {

/// What happened since the last check.
struct Work {
  std::uint64_t issues = 0;       // runs of the issue program
  std::uint64_t completions = 0;  // runs of the completion program
  /// According to the kernel's own account, for all programs; 0 runs if it keeps none.
  std::uint64_t accounted_runs = 0;
  std::uint64_t accounted_ns = 0;
  std::uint64_t writes = 0;          // of the completions
  std::uint64_t sampled_writes = 0;  // of these: of drives with a flash model
  double bios = 0;                   // that the programs of volumes timed, or would have timed
};

/// The share of all CPUs' time that the programs take, and what other efforts would take.
///
/// Runs are counted exactly; the cost of one was measured at the start, on stand-ins for the real tables. While the
/// kernel accounts for programs (kernel.bpf_stats_enabled), its figure replaces the estimate, and the difference
/// between the two corrects the estimate from then on.
class CostEstimate {
 public:
  /// By effort; absent if there is neither a measurement nor the kernel's account.
  using Ratios = std::array<std::optional<double>, model::kEfforts>;

  /// `cost`: absent if it could not be measured. `cpus`: of the host, at least 1.
  CostEstimate(const std::optional<model::RunCost>& cost, unsigned cpus);

  /// `effort`: the one in force during `work`. `elapsed` is more than 0.
  [[nodiscard]] Ratios observe(const Work& work, std::chrono::nanoseconds elapsed, model::Effort effort);

  /// Of one run that does everything, corrected by what was learned; absent if it could not be measured.
  [[nodiscard]] std::optional<model::RunCost> run_cost() const;

 private:
  std::optional<model::RunCost> cost_;
  double cpus_;
  double correction_ = 1;
};

/// Decides how much the programs in the kernel may do without taking more than their share of CPU time.
///
/// If the mean over `after` is above the limit, effort goes down one step. If the next higher effort would have stayed
/// well below the limit at every check for five times as long, it goes up one step. `nothing` is final.
class CostLimit {
 public:
  struct Rule {
    double ratio = 0;  // of all CPUs' time; 0: no limit
    std::chrono::nanoseconds after{std::chrono::minutes(1)};
  };
  struct Step {
    model::Effort from;
    model::Effort to;
    double ratio;  // why: the mean at `from`, or the highest that `to` would have reached
  };

  /// `efforts`: those that this daemon can make, the highest first; at least one.
  explicit CostLimit(std::vector<model::Effort> efforts) : efforts_(std::move(efforts)) {}

  /// Once per check. Without a ratio, nothing is decided.
  std::optional<Step> observe(const CostEstimate::Ratios& ratios, std::chrono::nanoseconds elapsed, const Rule& rule);

  [[nodiscard]] model::Effort effort() const { return efforts_[at_]; }

  /// A step up requires that the higher effort stay below this share of the limit.
  static constexpr double kWellBelow = 0.7;
  static constexpr int kLongerUp = 5;  // than a step down

 private:
  std::optional<Step> step_down(double ratio, std::chrono::nanoseconds elapsed, const Rule& rule);
  std::optional<Step> step_up(double ratio, std::chrono::nanoseconds elapsed, const Rule& rule);
  Step go_to(std::size_t at, double ratio);
  void clear_window();

  std::vector<model::Effort> efforts_;
  std::size_t at_ = 0;
  std::deque<std::pair<std::chrono::nanoseconds, double>> window_;  // each check's time, and ratio x time
  std::chrono::nanoseconds windowed_{};
  double weighed_ = 0;  // sum of ratio x time, in ns
  std::chrono::nanoseconds well_below_{};
  double highest_ = 0;  // of the higher effort, in that time
};

/// The stage that determines the CPU cost of the programs in the kernel, and what they leave out (limits.cpu).
class OwnCost final : public model::Stage {
 public:
  model::Findings observe(const model::Tick& tick) override;

 private:
  /// Runs of the programs for one device so far.
  struct Runs {
    std::optional<std::uint64_t> issues;
    std::uint64_t completions = 0;
    std::uint64_t writes = 0;
  };
  /// The state of all that RecentCost counts, at a tick that read the CPU times.
  struct Mark {
    model::SteadyTime at;
    model::RecentCost totals;  // since the start; by program, whether the kernel accounts or not
    bool accounted = false;    // all runs since the mark before
  };
  Work work_since_last(const model::Tick& tick);
  void take_step(const CostLimit::Step& step, const model::Tick& tick, model::Effects& effects);
  void remember(const Work& work, const model::Tick& tick);
  [[nodiscard]] std::shared_ptr<const model::RecentCost> recent_cost() const;

  std::optional<CostEstimate> cost_;
  std::optional<CostLimit> limit_;
  model::PerDevice<Runs> devices_;
  std::optional<model::SteadyTime> last_;
  std::uint64_t bios_ = 0;
  double bios_of_completion_ = 0;  // when they were last timed
  std::uint64_t accounted_runs_ = 0;
  std::uint64_t accounted_ns_ = 0;
  model::OwnCostFigures figures_;
  bool warned_ = false;  // that the limit has no effect
  model::RecentCost totals_;
  bool accounted_ = true;   // no run since the last mark was missing in the kernel's account
  std::deque<Mark> marks_;  // of the last minute
};

}  // namespace ssdpulse::block
