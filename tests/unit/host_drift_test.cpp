// SPDX-License-Identifier: Apache-2.0
// Is an honest drive never accused, whatever it counts, and do another host's writes show? Drives that count write
// zeroes and discards, or only one of them, or neither, or change their habits; in bytes, and in data units.
#include "daemon/wear/host_drift.h"

#include <gtest/gtest.h>

#include <random>

namespace ssdpulse::wear {
namespace {

constexpr std::uint64_t kMB = 1'000'000;

/// What the host does in one poll interval.
struct Load {
  std::uint64_t written = 0;
  std::uint64_t zeroed = 0;
  std::uint64_t discarded = 0;
};

struct CountingDrive {
  bool counts_zeroes;
  bool counts_discards;
  std::uint64_t unit = 1;
  double elsewhere = 0;  // additional writes from there, as a share of the host's

  std::uint64_t counted = 0;  // bytes
  BlockWrites block;
  HostDrift drift;

  void poll(const Load& load, bool prompt = true) {
    counted += load.written + static_cast<std::uint64_t>(elsewhere * static_cast<double>(load.written)) +
               (counts_zeroes ? load.zeroed : 0) + (counts_discards ? load.discarded : 0);
    block.written_bytes += load.written;
    block.zeroed_bytes += load.zeroed;
    block.discarded_bytes += load.discarded;
    observe(prompt);
  }
  void observe(bool prompt = true) {
    const Uint128 count = (counted + unit - 1) / unit;
    const auto rounding = unit == 1 ? model::Rounding::exact : model::Rounding::up;
    drift.observe({{count, count}, CounterFormat({count, unit, rounding}), block, block, 1 << 20}, prompt);
  }
  [[nodiscard]] HostDrift::Drift said() const { return drift.drift().value(); }
  [[nodiscard]] bool accused() const { return said().lower > 0 || said().upper < 0; }
};

/// All kinds, with and without data units.
std::vector<CountingDrive> kinds() {
  std::vector<CountingDrive> drives;
  for (const std::uint64_t unit : {std::uint64_t{1}, std::uint64_t{512'000}}) {
    for (const bool zeroes : {false, true}) {
      for (const bool discards : {false, true}) {
        drives.push_back({zeroes, discards, unit, 0, 0, {}, {}});
      }
    }
  }
  return drives;
}

TEST(HostDrift, MkfsIsNotDrift) {
  for (CountingDrive drive : kinds()) {
    drive.poll({});
    drive.poll({2 * kMB, 64 << 20, 0});  // the log of xfs
    EXPECT_FALSE(drive.accused());
    EXPECT_LT(drive.said().upper - drive.said().lower, 2 * kMB) << "and it is known what the drive counts";
    EXPECT_NEAR(drive.said().likely, 0, static_cast<double>(drive.unit));
    drive.poll({100 * kMB, 0, 0});
    EXPECT_FALSE(drive.accused());
  }
}

TEST(HostDrift, WhatIsNotKnownIsWithinTheBounds) {
  for (CountingDrive drive : kinds()) {
    drive.poll({});
    drive.poll({500 * kMB, 64 * kMB, 0}, false);  // not prompt: a counter with unknown habits
    drive.poll({500 * kMB, 0, 200 * kMB}, false);
    EXPECT_FALSE(drive.accused());
    EXPECT_GE(drive.said().upper - drive.said().lower, 264e6);
  }
}

TEST(HostDrift, AnHonestDriveIsNeverAccused) {
  std::mt19937_64 random(15);
  for (int run = 0; run < 500; ++run) {
    for (CountingDrive drive : kinds()) {
      drive.observe();
      for (int poll = 0; poll < 40; ++poll) {
        const auto some = [&](std::uint64_t most) { return random() % 3 == 0 ? random() % most : 0; };
        drive.poll({some(2000 * kMB), some(300 * kMB), some(100'000 * kMB)}, random() % 8 != 0);
        ASSERT_FALSE(drive.accused()) << "run " << run << ", poll " << poll;
        ASSERT_TRUE(drive.said().lower <= drive.said().likely && drive.said().likely <= drive.said().upper);
      }
    }
  }
}

TEST(HostDrift, APercentFromElsewhereShows) {
  for (CountingDrive drive : kinds()) {
    drive.elsewhere = 0.01;
    drive.observe();
    drive.poll({200 * kMB, 600 * kMB, 0});      // a volume is zeroed
    drive.poll({200 * kMB, 0, 100'000 * kMB});  // and trimmed
    for (int poll = 0; poll < 200; ++poll) {
      drive.poll({1000 * kMB, 10 * kMB, 400 * kMB});  // deletes, discarded online
    }
    EXPECT_GT(drive.said().lower, 0.0099 * 200'400 * kMB);
    EXPECT_LT(drive.said().upper, 0.0101 * 200'400 * kMB);
  }
}

TEST(HostDrift, OnlineDiscardsAloneHideNoPercent) {
  for (const bool zeroes : {false, true}) {
    CountingDrive drive{zeroes, false, 512'000, 0.01, 0, {}, {}};
    drive.observe();
    for (int poll = 0; poll < 20; ++poll) {
      drive.poll({1000 * kMB, 0, 300 * kMB});  // never more than what is written
    }
    EXPECT_TRUE(drive.accused());
  }
}

TEST(HostDrift, WhatComesFromElsewhereIsNotLearned) {
  CountingDrive drive{false, false, 1, 1.0, 0, {}, {}};
  drive.observe();
  drive.poll({200 * kMB, 200 * kMB, 0});  // looks as if the zeroes counted
  EXPECT_EQ(drive.said().upper, 200e6) << "they were not more than all the rest";
  EXPECT_EQ(drive.said().lower, 0);
  drive.poll({0, 200 * kMB, 0});
  EXPECT_EQ(drive.said().lower, 200e6) << "zeroes do not count: it was somebody else";
}

TEST(HostDrift, OneThatChangesItsMindStaysUnknown) {
  CountingDrive drive{true, false, 1, 0, 0, {}, {}};
  drive.observe();
  drive.poll({0, 100 * kMB, 0});
  EXPECT_EQ(drive.said().upper, drive.said().lower);
  drive.counts_zeroes = false;  // with the deallocate bit
  for (int poll = 0; poll < 3; ++poll) {
    drive.poll({1000 * kMB, 100 * kMB, 0});
    EXPECT_FALSE(drive.accused());
    EXPECT_GE(drive.said().upper - drive.said().lower, 200e6);
  }
}

TEST(HostDrift, IoInFlightIsNotDrift) {
  CountingDrive drive{true, true, 1, 0, 0, {}, {}};
  drive.observe();
  drive.poll({100 * kMB, 0, 0});
  drive.counted += 5 << 20;  // counted at their submission
  drive.block.in_flight = 5;
  drive.observe();
  EXPECT_FALSE(drive.accused());
  drive.block.in_flight = 0;
  drive.block.erasing = true;
  drive.counted += 1 << 30;
  drive.observe();
  EXPECT_FALSE(drive.accused()) << "such a reading is left out";
  drive.block.erasing = false;
  drive.block.written_bytes += 5 << 20;
  drive.block.zeroed_bytes += 1 << 30;
  drive.observe();
  EXPECT_FALSE(drive.accused());
  EXPECT_EQ(drive.said().likely, 0);
}

TEST(HostDrift, IoInFlightAtTheStartIsNotDrift) {
  CountingDrive drive{true, true, 1, 0, 0, {}, {}};
  drive.counted = 3 << 20;
  drive.block.in_flight = 3;
  drive.observe();
  drive.block.in_flight = 0;
  drive.poll({0, 0, 0});
  drive.block.written_bytes = 3 << 20;
  drive.observe();
  EXPECT_FALSE(drive.accused());
}

}  // namespace
}  // namespace ssdpulse::wear
