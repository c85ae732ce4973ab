// SPDX-License-Identifier: Apache-2.0
#include "daemon/block/own_cost.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

namespace ssdpulse::block {
namespace {

using log::field;
using model::Effort;

/// Fewer runs in one second say little about the next second.
constexpr std::uint64_t kRunsToLearn = 1000;
/// Weight of a new sample of how far the measurement is off.
constexpr double kWeight = 0.2;

double ns_of(const Work& work, const model::RunCost& cost, std::size_t effort) {
  return static_cast<double>(work.issues) * cost.issue_ns * model::kRunShares[effort].issue +
         static_cast<double>(work.completions) * cost.completion_ns * model::kRunShares[effort].completion +
         work.bios * cost.completion_ns * model::kRunShares[effort].bio;
}

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

}  // namespace

CostEstimate::CostEstimate(const std::optional<model::RunCost>& cost, unsigned cpus)
    : cost_(cost), cpus_(std::max(cpus, 1U)) {}

CostEstimate::Ratios CostEstimate::observe(const Work& work, std::chrono::nanoseconds elapsed, model::Effort effort) {
  const double all_ns = static_cast<double>(elapsed.count()) * cpus_;
  const auto now = static_cast<std::size_t>(effort);
  Ratios ratios;
  if (cost_) {
    const double expected = ns_of(work, *cost_, now);
    if (work.accounted_runs >= kRunsToLearn && expected > 0) {
      correction_ += kWeight * (static_cast<double>(work.accounted_ns) / expected - correction_);
    }
    for (std::size_t other = 0; other < ratios.size(); ++other) {
      ratios[other] = ns_of(work, *cost_, other) * correction_ / all_ns;
    }
  }
  if (work.accounted_runs > 0) {
    ratios[now] = static_cast<double>(work.accounted_ns) / all_ns;
  }
  return ratios;
}

std::optional<model::RunCost> CostEstimate::run_cost() const {
  return cost_ ? std::optional(model::RunCost{cost_->issue_ns * correction_, cost_->completion_ns * correction_})
               : std::nullopt;
}

std::optional<CostLimit::Step> CostLimit::observe(const CostEstimate::Ratios& ratios, std::chrono::nanoseconds elapsed,
                                                  const Rule& rule) {
  const auto ratio_of = [&](std::size_t at) { return ratios[static_cast<std::size_t>(efforts_[at])]; };
  if (effort() == Effort::nothing) {
    return std::nullopt;
  }
  if (const auto now = ratio_of(at_); now && rule.ratio > 0) {
    if (auto step = step_down(*now, elapsed, rule)) {
      return step;
    }
  } else {
    clear_window();
  }
  if (at_ == 0) {
    return std::nullopt;
  }
  const auto higher = ratio_of(at_ - 1);
  // Without a limit, effort goes up again without waiting.
  if (rule.ratio <= 0) {
    return go_to(at_ - 1, higher.value_or(0));
  }
  return higher ? step_up(*higher, elapsed, rule) : std::nullopt;
}

std::optional<CostLimit::Step> CostLimit::step_down(double ratio, std::chrono::nanoseconds elapsed, const Rule& rule) {
  window_.emplace_back(elapsed, ratio * static_cast<double>(elapsed.count()));
  windowed_ += elapsed;
  weighed_ += window_.back().second;
  while (windowed_ - window_.front().first >= rule.after) {
    windowed_ -= window_.front().first;
    weighed_ -= window_.front().second;
    window_.pop_front();
  }
  const double mean = weighed_ / static_cast<double>(windowed_.count());
  const bool full = windowed_ >= rule.after;
  return full && mean > rule.ratio && at_ + 1 < efforts_.size() ? std::optional(go_to(at_ + 1, mean)) : std::nullopt;
}

std::optional<CostLimit::Step> CostLimit::step_up(double ratio, std::chrono::nanoseconds elapsed, const Rule& rule) {
  if (ratio >= kWellBelow * rule.ratio) {
    well_below_ = {};
    highest_ = 0;
    return std::nullopt;
  }
  well_below_ += elapsed;
  highest_ = std::max(highest_, ratio);
  return well_below_ >= kLongerUp * rule.after ? std::optional(go_to(at_ - 1, highest_)) : std::nullopt;
}

CostLimit::Step CostLimit::go_to(std::size_t at, double ratio) {
  const Step step{efforts_[at_], efforts_[at], ratio};
  at_ = at;
  clear_window();
  well_below_ = {};
  highest_ = 0;
  return step;
}

void CostLimit::clear_window() {
  window_.clear();
  windowed_ = {};
  weighed_ = 0;
}

Work OwnCost::work_since_last(const model::Tick& tick) {
  Work work;
  std::set<std::string> sampled;
  if (tick.flash) {
    for (const model::DeviceFlashSamples& samples : tick.flash->devices) {
      sampled.insert(samples.device);
    }
  }
  devices_.observe(tick, [&](std::size_t /*number*/, const model::DeviceTick& device, Runs& known) {
    if (!device.block.io) {
      return;
    }
    const auto [issues, completions] = runs_of(device.block);
    const std::uint64_t writes = device.block.io->operation(model::Operation::write).completions;
    if (known.issues) {
      work.issues += issues - *known.issues;
      work.completions += completions - known.completions;
      work.writes += writes - known.writes;
      work.sampled_writes += sampled.contains(device.block.device->name) ? writes - known.writes : 0;
    }
    known = {issues, completions, writes};
  });
  std::uint64_t bios = 0;
  for (const auto& io : tick.bios) {
    bios = std::accumulate(io->operations.begin(), io->operations.end(), bios,
                           [](std::uint64_t sum, const model::BioOperation& one) { return sum + one.submitted; });
  }
  // Their counts begin again after a pause.
  if (const std::uint64_t before = std::exchange(bios_, bios); bios > before && before > 0 && work.completions > 0) {
    // Those of devices without a row pass the programs, too, and cost about an eighth.
    constexpr double kPassing = 0.125;
    bios_of_completion_ = kPassing + static_cast<double>(bios - before) / static_cast<double>(work.completions);
  }
  work.bios = bios_of_completion_ * static_cast<double>(work.completions);
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

void OwnCost::take_step(const CostLimit::Step& step, const model::Tick& tick, model::Effects& effects) {
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

void OwnCost::remember(const Work& work, const model::Tick& tick) {
  constexpr std::size_t kMarks = 5;  // of 15 seconds each
  totals_.issues += tick.completion_only ? 0 : static_cast<double>(work.issues);
  totals_.completions += static_cast<double>(work.completions);
  totals_.writes += static_cast<double>(work.writes);
  totals_.sampled_writes += static_cast<double>(work.sampled_writes);
  accounted_ = accounted_ && (work.completions == 0 || work.accounted_runs > 0);
  if (!tick.own_cpu) {
    return;
  }
  for (const model::ProgramStats& program : tick.programs) {
    totals_.accounted[program.name] = {static_cast<double>(program.runs.value_or(0)),
                                       static_cast<double>(program.run_ns.value_or(0))};
  }
  totals_.cpus = tick.cpus;
  totals_.cpu = *tick.own_cpu;
  marks_.push_back({tick.at, totals_, std::exchange(accounted_, true)});
  if (marks_.size() > kMarks) {
    marks_.pop_front();
  }
  figures_.recent = recent_cost();
}

std::shared_ptr<const model::RecentCost> OwnCost::recent_cost() const {
  if (marks_.size() < 2) {
    return nullptr;
  }
  const Mark& first = marks_.front();
  const model::RecentCost& before = first.totals;
  auto recent = std::make_shared<model::RecentCost>(marks_.back().totals);
  recent->seconds = std::chrono::duration<double>(marks_.back().at - first.at).count();
  recent->issues -= before.issues;
  recent->completions -= before.completions;
  recent->writes -= before.writes;
  recent->sampled_writes -= before.sampled_writes;
  recent->run_cost = cost_->run_cost();
  double runs = 0;
  for (auto& [name, program] : recent->accounted) {
    if (const auto found = before.accounted.find(name); found != before.accounted.end()) {
      program.runs -= found->second.runs;
      program.ns -= found->second.ns;
    }
    runs += program.runs;
  }
  const bool accounted =
      runs > 0 && std::all_of(marks_.begin() + 1, marks_.end(), [](const Mark& mark) { return mark.accounted; });
  if (!accounted) {
    recent->accounted.clear();
  }
  recent->cpu.process_seconds -= before.cpu.process_seconds;
  for (auto& [name, seconds] : recent->cpu.thread_seconds) {
    const auto found = before.cpu.thread_seconds.find(name);
    // Of several threads of this name, one may have ended.
    seconds = std::max(0.0, seconds - (found == before.cpu.thread_seconds.end() ? 0 : found->second));
  }
  return recent;
}

model::Findings OwnCost::observe(const model::Tick& tick) {
  model::Findings findings;
  if (!cost_) {
    cost_.emplace(tick.run_cost, tick.cpus);
    limit_.emplace(tick.completion_only
                       ? std::vector{Effort::everything, Effort::essentials, Effort::nothing}
                       : std::vector{Effort::everything, Effort::essentials, Effort::completions, Effort::nothing});
  }
  const auto before = std::exchange(last_, tick.at);
  const Work work = work_since_last(tick);
  remember(work, tick);
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

}  // namespace ssdpulse::block
