// SPDX-License-Identifier: Apache-2.0
// Are lifetimes right when most of them are unfinished, and are hints in the wrong order noticed?
#include <gtest/gtest.h>

#include <cmath>

#include "daemon/flash/lifetimes.h"
#include "daemon/model/write_details.h"
#include "tests/unit/flash_loads.h"
#include "tests/unit/flash_tier.h"

namespace ssdpulse::flash {
namespace {

using model::WriteHint;
using test::FlashDice;

constexpr std::uint32_t kPages = 65'536;
constexpr std::uint8_t number(WriteHint hint) { return static_cast<std::uint8_t>(hint); }

TEST(Lifetimes, BucketsHoldWhatTheyShould) {
  FlashDice dice(1);
  for (int i = 0; i < 100'000; ++i) {
    const auto lifetime = static_cast<std::uint32_t>(dice.next() >> (32 + dice.below(32)));
    const std::size_t bucket = LifetimeHistogram::bucket_of(lifetime);
    ASSERT_LT(bucket, LifetimeHistogram::kBuckets);
    EXPECT_LE(LifetimeHistogram::lower_bound(bucket), lifetime);
    EXPECT_GT(LifetimeHistogram::lower_bound(bucket + 1), lifetime);
    EXPECT_LE(LifetimeHistogram::lower_bound(bucket + 1),
              std::max(LifetimeHistogram::lower_bound(bucket) * 1.07, 16.0));
  }
  EXPECT_EQ(LifetimeHistogram::bucket_of(UINT32_MAX), LifetimeHistogram::kBuckets - 1);
}

/// Half of the uniformly written pages live longer than ln 2 drive writes.
TEST(Lifetimes, UniformWritesLiveForLnTwo) {
  Lifetimes lifetimes(kPages, kPages);
  FlashDice dice(2);
  for (std::uint32_t i = 0; i < 8 * kPages; ++i) {
    lifetimes.advance(1);
    lifetimes.write(static_cast<std::uint32_t>(dice.below(kPages)), 0);
  }
  const auto median = lifetimes.survival(0).quantile(0.5);
  ASSERT_TRUE(median);
  EXPECT_NEAR(median->lifetime / std::log(2), 1, 0.01);
  EXPECT_LT(median->lower, std::log(2));
  EXPECT_GT(median->upper, std::log(2));
  EXPECT_LT(median->upper - median->lower, 0.02);
  EXPECT_LT(lifetimes.unknown_share(), 0.001);
}

/// 90 % of the writes go to a tenth of the pages: the others live for 9 ln 2 = 6.24 drive writes in the median, and
/// most of them have not died after ten.
TEST(Lifetimes, UnfinishedOnesCount) {
  Lifetimes lifetimes(kPages, kPages);
  const auto load = test::hot_cold_load(kPages, 0.9, 0.1, false, 3);
  for (std::uint32_t i = 0; i < 10 * kPages; ++i) {
    const auto operation = load();
    lifetimes.advance(1);
    lifetimes.write(static_cast<std::uint32_t>(operation.first), operation.hint);
  }
  const auto cold = lifetimes.survival(0);
  EXPECT_GT(cold.living, cold.ended / 2);
  const auto median = cold.quantile(0.5);
  ASSERT_TRUE(median);
  EXPECT_NEAR(median->lifetime / 6.37, 1, 0.025) << "of a full log of the same load";
  const auto hot = lifetimes.survival(number(WriteHint::short_lived)).quantile(0.5);
  ASSERT_TRUE(hot);
  EXPECT_NEAR(hot->lifetime / (std::log(2) / 9), 1, 0.01);
  EXPECT_FALSE(cold.quantile(0.99));
}

/// One page in `rate` is followed; what FIFO collection relocates follows from lifetimes alone.
TEST(Lifetimes, TellWhatFifoRelocates) {
  for (const auto& [more, expected] : {std::pair{0.07, 7.817}, {0.12, 4.846}, {0.28, 2.481}}) {
    Lifetimes lifetimes(kPages, std::uint64_t{8} * kPages);
    FlashDice dice(4);
    Lifetimes::Laps from;
    for (std::uint32_t i = 0; i < 8 * kPages; ++i) {
      if (i == 4 * kPages) {
        from = lifetimes.laps();
      }
      lifetimes.advance(8);
      lifetimes.write(static_cast<std::uint32_t>(dice.below(kPages)), 0);
    }
    const auto found = lifetimes.fifo_write_amplification(from, lifetimes.laps(), more);
    ASSERT_TRUE(found);
    EXPECT_NEAR(*found / expected, 1, 0.015) << more;
    std::printf("lifetimes alone, uniform %.2f: %.3f (%.3f)\n", more, *found, expected);
  }
  Lifetimes idle(kPages, kPages);
  EXPECT_FALSE(idle.fifo_write_amplification(idle.laps(), idle.laps(), 0.12));
}

/// Data with the hint `first` is overwritten `times_longer` times as rarely as data with the hint `second`.
std::vector<model::HintOrderViolation> violations(double times_longer, std::uint8_t first, std::uint8_t second,
                                                  double drive_writes = 4) {
  Lifetimes lifetimes(kPages, kPages);
  FlashDice dice(5);
  const double share = times_longer / (1 + times_longer);
  for (std::uint32_t i = 0; i < drive_writes * kPages; ++i) {
    lifetimes.advance(1);
    const bool frequent = dice.share() < share;
    const auto page = static_cast<std::uint32_t>(dice.below(kPages / 2) + (frequent ? 0 : kPages / 2));
    lifetimes.write(page, frequent ? second : first);
  }
  return hint_order_violations(lifetimes, 1e12);
}

TEST(HintOrder, ShortThatOutlivesLongIsReported) {
  const auto found = violations(8, number(WriteHint::short_lived), number(WriteHint::long_lived), 8);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].shorter, number(WriteHint::short_lived));
  EXPECT_EQ(found[0].longer, number(WriteHint::long_lived));
  EXPECT_NEAR(found[0].median_of_longer_bytes, std::log(2) * 0.5 / (8.0 / 9) * 1e12, 0.02e12);
  EXPECT_NEAR(found[0].median_of_shorter_bytes / found[0].median_of_longer_bytes, 8, 0.4);
}

TEST(HintOrder, RightHintsAreNot) {
  EXPECT_TRUE(violations(8, number(WriteHint::long_lived), number(WriteHint::short_lived), 8).empty());
  EXPECT_TRUE(violations(1, number(WriteHint::short_lived), number(WriteHint::extreme)).empty());
}

TEST(HintOrder, NothingIsSaidWithoutHintsOrEvidence) {
  EXPECT_TRUE(violations(8, number(WriteHint::not_set), number(WriteHint::none), 8).empty());
  EXPECT_TRUE(violations(8, number(WriteHint::short_lived), number(WriteHint::long_lived), 0.2).empty());
}

/// A quarter of the pages live for 100, and nobody knows how long the others do.
TEST(LifetimeClasses, WhatIsUnknownFillsTheUpperClasses) {
  LifetimeClasses classes;
  for (int i = 0; i < 4096; ++i) {
    classes.next(i % 4 == 0 ? std::optional(100U) : std::nullopt);
  }
  EXPECT_EQ(classes.next(100), 0U);
  EXPECT_EQ(classes.next(10'000), 1U) << "longer than the shortest quarter";
  EXPECT_EQ(classes.next(std::nullopt), LifetimeClasses::kClasses - 1);
}

TEST(Lifetimes, AFormattedDriveIsKnown) {
  Lifetimes lifetimes(1000, 1000);
  EXPECT_EQ(lifetimes.unknown_share(), 1);
  lifetimes.write(1, 0);
  lifetimes.forget_all();
  EXPECT_EQ(lifetimes.unknown_share(), 0);
  EXPECT_EQ(lifetimes.unmapped_share(), 1);
  lifetimes.discard(7);
  lifetimes.write(7, 0);
  EXPECT_EQ(lifetimes.unmapped_share(), 0.999);
}

}  // namespace
}  // namespace ssdpulse::flash
