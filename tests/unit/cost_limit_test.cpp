// SPDX-License-Identifier: Apache-2.0
// When does the daemon turn something off to spare the host, and when does it turn that on again?
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "daemon/block/own_cost.h"
#include "daemon/model/flash_values.h"

namespace ssdpulse::block {
namespace {

using model::Effort;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr CostLimit::Rule kRule{0.02, minutes(1)};
const std::vector<Effort> kAll{Effort::everything, Effort::essentials, Effort::completions, Effort::nothing};

/// A host whose load would cost this much with everything on; less with each reduced effort.
CostEstimate::Ratios load(double everything) { return {everything, everything * 0.8, everything * 0.4, 0.0}; }

/// The effort after each of this many seconds.
std::vector<Effort> run(CostLimit& limit, double everything, int ticks, const CostLimit::Rule& rule = kRule) {
  std::vector<Effort> efforts;
  for (int tick = 0; tick < ticks; ++tick) {
    limit.observe(load(everything), seconds(1), rule);
    efforts.push_back(limit.effort());
  }
  return efforts;
}

TEST(CostLimit, ABusyMinuteIsOneStepDown) {
  CostLimit limit(kAll);
  EXPECT_EQ(run(limit, 0.03, 59).back(), Effort::everything);
  EXPECT_EQ(run(limit, 0.03, 1).back(), Effort::essentials) << "0.024 would still be too much";
  EXPECT_EQ(run(limit, 0.03, 59).back(), Effort::essentials);
  EXPECT_EQ(run(limit, 0.03, 1).back(), Effort::completions) << "0.012 is not";
  EXPECT_EQ(run(limit, 0.03, 3600).back(), Effort::completions);
}

TEST(CostLimit, ABurstChangesNothing) {
  CostLimit limit(kAll);
  for (int minute = 0; minute < 10; ++minute) {
    EXPECT_EQ(run(limit, 0.05, 20).back(), Effort::everything);
    EXPECT_EQ(run(limit, 0.001, 40).back(), Effort::everything);
  }
}

TEST(CostLimit, TheMeanDecidesNotEachSecond) {
  CostLimit limit(kAll);
  for (int pair = 0; pair < 30; ++pair) {
    run(limit, 0.06, 1);
    run(limit, 0.0, 1);
  }
  EXPECT_EQ(limit.effort(), Effort::essentials);
}

TEST(CostLimit, BackAfterFiveMinutesWellBelow) {
  CostLimit limit(kAll);
  run(limit, 0.03, 60);
  ASSERT_EQ(limit.effort(), Effort::essentials);
  EXPECT_EQ(run(limit, 0.015, 3600).back(), Effort::essentials) << "0.015 is below the limit, but not well";
  EXPECT_EQ(run(limit, 0.013, 299).back(), Effort::essentials);
  EXPECT_EQ(run(limit, 0.013, 1).back(), Effort::everything);
}

TEST(CostLimit, OneBusySecondRestartsTheWait) {
  CostLimit limit(kAll);
  run(limit, 0.03, 60);
  run(limit, 0.013, 299);
  run(limit, 0.02, 1);
  EXPECT_EQ(run(limit, 0.013, 299).back(), Effort::essentials);
  EXPECT_EQ(run(limit, 0.013, 1).back(), Effort::everything);
}

TEST(CostLimit, NothingIsForGood) {
  CostLimit limit(kAll);
  EXPECT_EQ(run(limit, 0.1, 180).back(), Effort::nothing);
  EXPECT_EQ(run(limit, 0.0, 36000).back(), Effort::nothing);
  EXPECT_EQ(run(limit, 0.0, 10, {0, minutes(1)}).back(), Effort::nothing);
}

TEST(CostLimit, WithoutALimitEverythingIsDone) {
  CostLimit limit(kAll);
  EXPECT_EQ(run(limit, 1.0, 3600, {0, minutes(1)}).back(), Effort::everything);
  run(limit, 0.03, 120);
  ASSERT_EQ(limit.effort(), Effort::completions);
  EXPECT_EQ(run(limit, 1.0, 2, {0, minutes(1)}).back(), Effort::everything);
}

TEST(CostLimit, WhatIsNotKnownDecidesNothing) {
  CostLimit limit(kAll);
  run(limit, 0.03, 59);
  limit.observe({}, seconds(1), kRule);
  EXPECT_EQ(run(limit, 0.03, 59).back(), Effort::everything) << "the minute began anew";
  EXPECT_EQ(run(limit, 0.03, 1).back(), Effort::essentials);
  for (int tick = 0; tick < 3600; ++tick) {
    limit.observe({std::nullopt, 0.0, std::nullopt, std::nullopt}, seconds(1), kRule);
  }
  EXPECT_EQ(limit.effort(), Effort::essentials) << "what everything would take is not known";
}

RC_GTEST_PROP(CostLimit, StepsAreSingleRareAndForAReason, ()) {
  CostLimit limit(kAll);
  const CostLimit::Rule rule{0.02, seconds(*rc::gen::inRange(1, 20))};
  seconds since_step{0};
  double highest = 0;
  for (int tick = 0; tick < 400; ++tick) {
    const double everything = *rc::gen::inRange(0, 60) / 1000.0;
    const Effort before = limit.effort();
    since_step += seconds(1);
    const auto ratio = load(everything)[static_cast<std::size_t>(before)].value();
    highest = std::max(highest, ratio);
    const auto step = limit.observe(load(everything), seconds(1), rule);
    if (!step) {
      RC_ASSERT(limit.effort() == before);
      continue;
    }
    RC_ASSERT((step->from == before && step->to == limit.effort()));
    const int distance = static_cast<int>(step->to) - static_cast<int>(step->from);
    RC_ASSERT((distance == 1 || distance == -1));
    RC_ASSERT(before != Effort::nothing);
    const auto least = distance == 1 ? rule.after : rule.after * CostLimit::kLongerUp;
    RC_ASSERT(since_step >= least);
    const bool reason = distance == 1 ? step->ratio > rule.ratio && highest > rule.ratio
                                      : step->ratio < CostLimit::kWellBelow * rule.ratio;
    RC_ASSERT(reason);
    since_step = seconds(0);
    highest = 0;
  }
}

TEST(OwnCost, RunsByTheirCostOverAllCpus) {
  CostEstimate cost(model::RunCost{50, 150}, 4);
  const auto ratios = cost.observe({1'000'000, 2'000'000, 0, 0}, seconds(1), Effort::everything);
  EXPECT_DOUBLE_EQ(ratios[0].value(), (0.05 + 0.3) / 4);
  EXPECT_LT(ratios[1].value(), ratios[0].value());
  EXPECT_LT(ratios[2].value(), ratios[1].value());
  EXPECT_EQ(ratios[3], 0.0);
  EXPECT_DOUBLE_EQ(cost.observe({1'000'000, 2'000'000, 0, 0}, seconds(2), Effort::everything)[0].value(), 0.35 / 8);
}

TEST(OwnCost, IsNotKnownWithoutACost) {
  CostEstimate cost(std::nullopt, 4);
  for (const auto& ratio : cost.observe({1000, 1000, 0, 0}, seconds(1), Effort::everything)) {
    EXPECT_FALSE(ratio);
  }
  const auto accounted = cost.observe({1000, 1000, 2000, 40'000'000}, seconds(1), Effort::essentials);
  EXPECT_FALSE(accounted[0]);
  EXPECT_DOUBLE_EQ(accounted[1].value(), 0.01) << "by the kernel's account of what is done now";
}

TEST(OwnCost, TheKernelsAccountWinsAndIsRemembered) {
  CostEstimate cost(model::RunCost{50, 150}, 1);
  const block::Work doubled{100'000, 100'000, 200'000, 40'000'000};
  for (int tick = 0; tick < 60; ++tick) {
    EXPECT_DOUBLE_EQ(cost.observe(doubled, seconds(1), Effort::everything)[0].value(), 0.04);
  }
  const auto after = cost.observe({100'000, 100'000, 0, 0}, seconds(1), Effort::everything);
  EXPECT_NEAR(after[0].value(), 0.04, 1e-4) << "measured at the start: 0.02";
}

TEST(OwnCost, AFewAccountedRunsTeachNothing) {
  CostEstimate cost(model::RunCost{50, 150}, 1);
  for (int tick = 0; tick < 60; ++tick) {
    (void)cost.observe({10, 10, 20, 1'000'000}, seconds(1), Effort::everything);
  }
  EXPECT_DOUBLE_EQ(cost.observe({100'000, 100'000, 0, 0}, seconds(1), Effort::everything)[0].value(), 0.02);
}

/// A daemon that measures one disk, on a host with four CPUs; CPU times are read every 15 ticks.
struct Host {
  OwnCost cost;
  model::Tick tick;
  model::DeviceIo io;
  std::uint64_t runs = 0;
  std::shared_ptr<const model::RecentCost> recent = nullptr;

  Host() {
    tick.cpus = 4;
    tick.run_cost = model::RunCost{50, 150};
    model::FlashSamples samples;
    samples.devices = {{"nvme0n1", 1, {}, {}}};
    tick.flash = std::make_shared<const model::FlashSamples>(samples);
  }

  /// So many seconds with 1000 reads and 200 writes each. `accounts`: the kernel, each run with 300 ns.
  void pass(int ticks, bool accounts) {
    for (int i = 0; i < ticks; ++i) {
      tick.at += seconds(1);
      for (const auto& [operation, ios] : {std::pair(model::Operation::read, 1000U), {model::Operation::write, 200U}}) {
        io.operations[model::index(operation)].issues += ios;
        io.operations[model::index(operation)].completions += ios;
      }
      runs += accounts ? 1200 : 0;
      model::DeviceTick device;
      model::Device disk;
      disk.name = "nvme0n1";
      device.block.device = std::make_shared<const model::Device>(disk);
      device.block.io = std::make_shared<const model::DeviceIo>(io);
      tick.devices = {device};
      tick.programs = {{"on_issue", {}, {}, {}}, {"on_complete", {}, {}, {}}};
      for (model::ProgramStats& program : tick.programs) {
        if (runs > 0) {
          program.runs = runs;
          program.run_ns = runs * 300;
        }
      }
      const auto second = static_cast<double>(tick.at.time_since_epoch() / seconds(1));
      tick.own_cpu.reset();
      if (tick.at.time_since_epoch() / seconds(1) % 15 == 1) {
        tick.own_cpu =
            model::CpuTimes{second * 0.01, {{"ssdpulse", second * 0.004}, {"http", second < 40 ? 5.0 : 1.0}}};
      }
      model::Snapshot snapshot;
      cost.observe(tick).values(snapshot);
      recent = snapshot.own_cost.recent;
    }
  }
};

TEST(RecentCost, IsOfTheLastMinute) {
  Host host;
  host.pass(15, false);
  EXPECT_EQ(host.recent, nullptr);
  host.pass(1, false);
  ASSERT_NE(host.recent, nullptr);
  EXPECT_DOUBLE_EQ(host.recent->seconds, 15);
  host.pass(90, false);
  const model::RecentCost& recent = *host.recent;
  EXPECT_DOUBLE_EQ(recent.seconds, 60);
  EXPECT_EQ(recent.cpus, 4U);
  EXPECT_DOUBLE_EQ(recent.issues, 72'000);
  EXPECT_DOUBLE_EQ(recent.completions, 72'000);
  EXPECT_DOUBLE_EQ(recent.writes, 12'000);
  EXPECT_DOUBLE_EQ(recent.sampled_writes, 12'000);
  EXPECT_DOUBLE_EQ(recent.run_cost.value().completion_ns, 150);
  EXPECT_TRUE(recent.accounted.empty());
  EXPECT_NEAR(recent.cpu.process_seconds, 0.6, 1e-9);
  EXPECT_NEAR(recent.cpu.thread_seconds.at("ssdpulse"), 0.24, 1e-9);
}

TEST(RecentCost, OfThreadsThatEndedIsNotNegative) {
  Host host;
  host.pass(46, false);
  EXPECT_EQ(host.recent->cpu.thread_seconds.at("http"), 0);
}

TEST(RecentCost, TheKernelsAccountCountsIfItIsComplete) {
  Host host;
  host.pass(20, false);
  host.pass(56, true);
  EXPECT_TRUE(host.recent->accounted.empty()) << "some runs of this minute are not in it";
  host.pass(15, true);
  ASSERT_EQ(host.recent->accounted.size(), 2U);
  EXPECT_DOUBLE_EQ(host.recent->accounted.at("on_issue").runs, 72'000);
  EXPECT_DOUBLE_EQ(host.recent->accounted.at("on_issue").ns, 72'000 * 300);
  host.pass(15, false);
  EXPECT_TRUE(host.recent->accounted.empty());
}

}  // namespace
}  // namespace ssdpulse::block
