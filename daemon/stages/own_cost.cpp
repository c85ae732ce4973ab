// SPDX-License-Identifier: Apache-2.0
#include "daemon/stages/own_cost.h"

#include <numeric>
#include <utility>

namespace ssdpulse::stages {
namespace {

using log::field;
using model::Effort;

/// Every I/O that ended ran the completion program, and was issued before, whether we saw that or not.
std::pair<std::uint64_t, std::uint64_t> runs_of(const model::DeviceSample& sample) {
  std::uint64_t issues = 0;
  std::uint64_t completions = 0;
  for (std::size_t i = 0; i < model::kOperations; ++i) {
    const model::OperationIo& one = sample.io->operations[i];
    const std::uint64_t failovers = one.requeues[model::index(model::RequeueReason::failover)];
    issues += one.issues + one.untimed + one.requeues[model::index(model::RequeueReason::driver)];
    completions += one.completions + one.unissued_completions + failovers + sample.events.strays[i];
  }
  return {issues, completions};
}

std::vector<Effort> efforts_of(bool completion_only) {
  return completion_only ? std::vector{Effort::everything, Effort::essentials, Effort::nothing}
                         : std::vector{Effort::everything, Effort::essentials, Effort::completions, Effort::nothing};
}

}  // namespace

analysis::Work OwnCost::work_since_last(const Tick& tick) {
  analysis::Work work;
  devices_.observe(tick, [&](std::size_t /*number*/, const DeviceTick& device, Runs& known) {
    if (!device.block.io) {
      return;
    }
    const auto [issues, completions] = runs_of(device.block);
    if (known.issues) {
      work.issues += issues - *known.issues;
      work.completions += completions - known.completions;
    }
    known = {issues, completions};
  });
  std::uint64_t runs = 0;
  std::uint64_t run_ns = 0;
  for (const model::ProgramStats& program : tick.programs) {
    runs += program.runs.value_or(0);
    run_ns += program.run_ns.value_or(0);
  }
  if (accounted_runs_ > 0 && runs > accounted_runs_) {
    work.accounted_runs = runs - accounted_runs_;
    work.accounted_ns = run_ns - accounted_ns_;
  }
  accounted_runs_ = runs;
  accounted_ns_ = run_ns;
  return work;
}

void OwnCost::take_step(const analysis::CostLimit::Step& step, const Tick& tick, Effects& effects) {
  const bool down = step.to > step.from;
  ++(down ? figures_.steps_down : figures_.steps_up);
  effects.effort = step.to;
  effects.lines.push_back(
      log::line(down ? log::Level::warning : log::Level::info, "limits.cpu: the programs in the kernel do {}",
                down ? "less" : "more", field("effort", model::kEffortNames[static_cast<std::size_t>(step.to)]),
                field("before", model::kEffortNames[static_cast<std::size_t>(step.from)]),
                field("estimated_cpu_ratio", "{:.5f}", step.ratio), field("limit", "{:.5f}", tick.settings.cpu_limit),
                log::quoted("not_measured", model::what_is_off(step.to)),
                down ? field("runbook", "SsdpulseLimitingItself") : log::Field{}));
}

Findings OwnCost::observe(const Tick& tick) {
  Findings findings;
  if (!cost_) {
    cost_.emplace(tick.run_cost, tick.cpus);
    limit_.emplace(efforts_of(tick.completion_only));
  }
  const auto before = std::exchange(last_, tick.at);
  const analysis::Work work = work_since_last(tick);
  figures_.limit = tick.settings.cpu_limit;
  figures_.effort = limit_->effort();  // in effect during this tick
  if (before && tick.at > *before && !tick.last) {
    const auto elapsed = tick.at - *before;
    const auto ratios = cost_->observe(work, elapsed, limit_->effort());
    figures_.ratio = ratios[static_cast<std::size_t>(limit_->effort())];
    if (!figures_.ratio && figures_.limit > 0 && !std::exchange(warned_, true)) {
      findings.effects.lines.push_back(log::line(
          log::Level::warning, "limits.cpu has no effect: what a run of a program costs could not be measured"));
    }
    if (const auto step = limit_->observe(ratios, elapsed, {figures_.limit, tick.settings.limit_after})) {
      take_step(*step, tick, findings.effects);
    }
  }
  findings.values = [figures = figures_](model::Snapshot& snapshot) { snapshot.own_cost = figures; };
  return findings;
}

}  // namespace ssdpulse::stages
