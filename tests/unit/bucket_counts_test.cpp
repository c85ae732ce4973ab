// SPDX-License-Identifier: Apache-2.0
// Are quantiles and differences of histograms right, and is an effect of log reads visible?
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "bpf/abi/latency_buckets.h"
#include "daemon/model/latency_buckets.h"
#include "daemon/nvme/drive_io.h"

namespace ssdpulse::nvme {
namespace {

using namespace model;

/// Samples at these words, one each.
LatencyBuckets words_at(const std::vector<std::size_t>& places) {
  LatencyBuckets words(LATENCY_OVER_WORD + 1);
  for (const std::size_t place : places) {
    ++words[place];
  }
  return words;
}

TEST(Quantile, IsThatOfTheSortedSamples) {
  EXPECT_TRUE(rc::check([] {
    auto places = *rc::gen::nonEmpty(
        rc::gen::container<std::vector<std::size_t>>(rc::gen::inRange<std::size_t>(0, LATENCY_OVER_WORD + 1)));
    const int percent = *rc::gen::inRange(1, 101);
    std::sort(places.begin(), places.end());
    const std::size_t rank = (places.size() * static_cast<std::size_t>(percent) + 99) / 100;
    RC_ASSERT(model::quantile_bucket(words_at(places), percent / 100.0) == places[rank - 1]);
  }));
}

// 7 % of 100 and 28 % of 25: as products of doubles, both are slightly too large.
TEST(Quantile, AWholeRankIsNotRoundedUp) {
  std::vector<std::size_t> hundred(100);
  std::iota(hundred.begin(), hundred.end(), 0);
  EXPECT_EQ(model::quantile_bucket(words_at(hundred), 0.07), 6U);
  EXPECT_EQ(model::quantile_bucket(words_at({hundred.begin(), hundred.begin() + 25}), 0.28), 6U);
  EXPECT_EQ(model::quantile_bucket(words_at(hundred), 1), 99U);
}

TEST(Quantile, BoundsArePowersOfTwoOfASecond) {
  EXPECT_EQ(model::upper_bound_seconds(LATENCY_ZERO_WORD), 0);
  EXPECT_EQ(model::upper_bound_seconds(LATENCY_FIRST_NATIVE_WORD - LATENCY_FIRST_NATIVE_INDEX), 1);
  EXPECT_EQ(model::upper_bound_seconds(LATENCY_FIRST_NATIVE_WORD - LATENCY_FIRST_NATIVE_INDEX - 80), 1.0 / 1024);
  EXPECT_EQ(model::upper_bound_seconds(LATENCY_OVER_WORD - 1), 64);
  EXPECT_EQ(model::upper_bound_seconds(LATENCY_OVER_WORD), 64);
}

TEST(Added, IsTheDifferenceOrNothing) {
  EXPECT_EQ(added({}, {1, 2}), (LatencyBuckets{1, 2}));
  EXPECT_EQ(added({1, 1}, {1, 3, 4}), (LatencyBuckets{0, 2, 4}));
  EXPECT_EQ(added({1, 2}, {2, 1}), std::nullopt);
  EXPECT_EQ(added({1, 2}, {1}), std::nullopt);
}

TEST(Sparse, HasWhatTheDenseWordsHave) {
  const LatencyBuckets one = words_at({3, 3, 7, 200});
  const LatencyBuckets other = words_at({2, 7, LATENCY_OVER_WORD});
  auto sum = model::sparse(one);
  EXPECT_EQ(sum, (model::SparseBuckets{{3, 2}, {7, 1}, {200, 1}}));
  add(sum, model::sparse(other));
  LatencyBuckets dense = one;
  add(dense, other);
  EXPECT_EQ(sum, model::sparse(dense));
  EXPECT_EQ(model::count(sum), model::count(dense));
  for (const double share : {0.01, 0.28, 0.5, 0.72, 0.99, 1.0}) {
    EXPECT_EQ(model::quantile_bucket(sum, share), model::quantile_bucket(dense, share)) << share;
  }
  model::Difference difference;
  EXPECT_EQ(difference.of(one, dense), model::sparse(other));
  EXPECT_TRUE(difference.good());
  (void)difference.of(dense, one);
  EXPECT_FALSE(difference.good());
}

TEST(DeviceTime, CountsWhateverElseWasInFlight) {
  model::DeviceIo io;
  io.operations[model::index(model::Operation::read)].device_latency[0].words = {1, 0, 2};
  io.operations[model::index(model::Operation::read)].device_latency[3].words = {0, 5};
  io.operations[model::index(model::Operation::write)].device_latency[1].words = {7};
  EXPECT_EQ(device_time_buckets(io, {model::Operation::read}), (LatencyBuckets{1, 5, 2}));
  EXPECT_EQ(device_time_buckets(io, {model::Operation::read, model::Operation::write}), (LatencyBuckets{8, 5, 2}));
  EXPECT_TRUE(device_time_buckets(io, {model::Operation::flush}).empty());
}

TEST(Effect, IsTheRatioOfThe99thPercentiles) {
  LogReadEffect effect;
  LatencyBuckets near(LATENCY_OVER_WORD + 1);
  LatencyBuckets others(LATENCY_OVER_WORD + 1);
  near[100] = 2000;
  near[124] = 100;  // three powers of two above
  others[100] = 10'000;
  LatencyBuckets all = others;
  add(all, near);
  effect.add_near(near);
  EXPECT_EQ(effect.ratio(), std::nullopt) << "the others are not known yet";
  effect.add_all(all);
  EXPECT_EQ(effect.ratio(), 8.0);
}

TEST(Effect, SaysNothingOfAFewIos) {
  LogReadEffect effect;
  LatencyBuckets near(LATENCY_OVER_WORD + 1);
  near[100] = LogReadEffect::kMinIos - 1;
  LatencyBuckets all = near;
  all[100] += 1'000'000;
  effect.add_near(near);
  effect.add_all(all);
  EXPECT_EQ(effect.ratio(), std::nullopt);
}

TEST(Effect, ForgetsWithoutLosingTheShare) {
  LogReadEffect effect;
  for (int round = 0; round < 50; ++round) {
    LatencyBuckets near(LATENCY_OVER_WORD + 1);
    near[108] = 100'000;
    LatencyBuckets all = near;
    all[100] += 300'000;
    effect.add_near(near);
    effect.add_all(all);
  }
  EXPECT_EQ(effect.ratio(), 2.0);
}

}  // namespace
}  // namespace ssdpulse::nvme
