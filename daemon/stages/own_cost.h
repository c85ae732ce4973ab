// SPDX-License-Identifier: Apache-2.0
// OwnCost: the stage that determines the CPU cost of the programs in the kernel, and what they leave out (limits.cpu).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "daemon/analysis/cost_limit.h"
#include "daemon/analysis/own_cost.h"
#include "daemon/stages/per_device.h"
#include "daemon/stages/stage.h"

namespace ssdpulse::stages {

class OwnCost final : public Stage {
 public:
  Findings observe(const Tick& tick) override;

 private:
  /// Runs of the programs for one device so far.
  struct Runs {
    std::optional<std::uint64_t> issues;
    std::uint64_t completions = 0;
  };
  analysis::Work work_since_last(const Tick& tick);
  void take_step(const analysis::CostLimit::Step& step, const Tick& tick, Effects& effects);

  std::optional<analysis::OwnCost> cost_;
  std::optional<analysis::CostLimit> limit_;
  PerDevice<Runs> devices_;
  std::optional<model::SteadyTime> last_;
  std::uint64_t accounted_runs_ = 0;
  std::uint64_t accounted_ns_ = 0;
  model::OwnCostFigures figures_;
  bool warned_ = false;  // that there is nothing to judge by
};

}  // namespace ssdpulse::stages
