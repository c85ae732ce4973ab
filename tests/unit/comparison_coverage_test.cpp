// SPDX-License-Identifier: Apache-2.0
// Do the intervals of a comparison hold the truth as often as they claim? Simulated minutes whose true ratio is known:
// few in CI, 10,000 runs of each case in the long tier.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "daemon/compare/comparison.h"
#include "tests/unit/simulated_minutes.h"

namespace ssdpulse {
namespace {

using namespace compare;

bool long_tier() {
  const char* text = std::getenv("SSDPULSE_TEST_LONG");
  return text != nullptr && *text == '1';
}

int runs(int of_ci) {
  const char* text = std::getenv("SSDPULSE_COMPARISON_RUNS");
  return text != nullptr ? std::atoi(text) : long_tier() ? 10000 : of_ci;
}

struct Tally {
  int runs = 0;
  int claims = 0;  // with an interval
  int held = 0;    // of these, how often it held the truth
  int better = 0;
  int worse = 0;
  int same = 0;
  [[nodiscard]] double coverage() const { return claims == 0 ? 1 : static_cast<double>(held) / claims; }
};

struct Tallies {
  std::map<std::string, Tally> rows;
  int false_reports = 0;  // that call a row better or worse that is not
};

struct Scene {
  std::size_t minutes = 0;
  double ratio = 1;
  bool day = true;                // the history has the day before
  std::int64_t apart = 0;         // minutes between the windows; 0: the same hours on two days
  test::SimulatedDisk disk = {};  // before the change
};

Side side(const test::SimulatedDisk& disk, std::int64_t begin, std::size_t minutes, std::uint64_t seed) {
  const model::PastTime from{std::chrono::minutes(begin)};
  return {{from, from + std::chrono::minutes(minutes)}, test::simulate_minutes(disk, minutes, seed, begin), {}};
}

void tally(Tallies& tallies, const Comparison& comparison, double ratio) {
  bool wrong = false;
  for (const Row& row : comparison.rows) {
    if (row.unit != Unit::seconds) {
      continue;
    }
    Tally& tally = tallies.rows[row.id];
    ++tally.runs;
    tally.better += row.verdict == Verdict::better;
    tally.worse += row.verdict == Verdict::worse;
    tally.same += row.verdict == Verdict::same;
    wrong = wrong || (row.verdict == Verdict::better && ratio >= 1) || (row.verdict == Verdict::worse && ratio <= 1);
    const auto& change = row.answer();
    if (change) {
      ++tally.claims;
      tally.held += change->lower <= ratio && ratio <= change->upper;
    }
  }
  tallies.false_reports += wrong;
}

Tallies play(const Scene& scene, int count) {
  constexpr std::int64_t kDay = 1440;
  constexpr int kRunsOfADay = 10;  // the day costs far more than windows of a few minutes
  Tallies tallies;
  std::vector<model::MinuteOf> day;
  for (int run = 0; run < count; ++run) {
    const auto seed = static_cast<std::uint64_t>(run) * 3 + 1;
    // Which hours it is differs from run to run.
    test::SimulatedDisk disk = scene.disk;
    disk.first_hour = run / kRunsOfADay * kRunsOfADay * 0.618 * 24;
    if (scene.day && run % kRunsOfADay == 0) {
      day = test::simulate_minutes(disk, kDay, seed + 2, 0);
    }
    disk.first_hour = scene.day ? disk.first_hour : run * 0.618 * 24;
    Question question;
    question.chance = {.draws = long_tier() ? 1000U : 300U, .seed = seed};
    question.day = day;
    question.before = side(disk, kDay, scene.minutes, seed);
    const std::int64_t begin =
        kDay + (scene.apart == 0 ? kDay : static_cast<std::int64_t>(scene.minutes) + scene.apart);
    disk.first_hour += static_cast<double>(begin - kDay) / 60;
    disk.ratio = scene.ratio;
    question.after = side(disk, begin, scene.minutes, seed + 1);
    tally(tallies, compare::compare(question), scene.ratio);
  }
  for (const auto& [id, row] : tallies.rows) {
    const double all = row.runs;
    std::printf("%zu minutes%s, ratio %.1f, %-10s: %5d runs, %5d intervals, %.3f hold; ", scene.minutes,
                scene.day ? " and a day" : "", scene.ratio, id.c_str(), row.runs, row.claims, row.coverage());
    std::printf("better %.4f worse %.4f same %.4f\n", row.better / all, row.worse / all, row.same / all);
  }
  std::printf("%zu minutes%s, ratio %.1f: %.4f of the reports are wrong\n", scene.minutes,
              scene.day ? " and a day" : "", scene.ratio, static_cast<double>(tallies.false_reports) / count);
  return tallies;
}

class Coverage : public testing::TestWithParam<double> {};

TEST_P(Coverage, EightHours) {
  const double ratio = GetParam();
  const int count = runs(100);
  const double least = long_tier() ? 0.92 : 0.90;
  const double most = long_tier() ? 0.97 : 0.99;
  const Tallies tallies = play({.minutes = 480, .ratio = ratio, .day = false}, count);
  EXPECT_LE(tallies.false_reports, count / 20);
  for (const auto& [id, tally] : tallies.rows) {
    EXPECT_EQ(tally.claims, tally.runs) << id;
    EXPECT_GE(tally.coverage(), least) << id;
    EXPECT_LE(tally.coverage(), most) << id;
    if (ratio == 0.5) {
      EXPECT_GE(tally.better, id == "read.p99.9" ? 0 : count * 95 / 100) << id;
    }
  }
}

// Short windows: their variance is that of the day before.

void expect_held(const Tallies& tallies, double least, int count) {
  EXPECT_LE(tallies.false_reports, count / 20);
  EXPECT_FALSE(tallies.rows.empty());
  for (const auto& [id, tally] : tallies.rows) {
    EXPECT_EQ(tally.claims, tally.runs) << id << ": the change is always printed";
    EXPECT_GE(tally.coverage(), least) << id;
  }
}

TEST_P(Coverage, ShortWindows) {
  for (const std::size_t minutes : {3U, 5U, 10U, 60U}) {
    const int count = runs(50);
    expect_held(play({.minutes = minutes, .ratio = GetParam(), .apart = 10}, count), long_tier() ? 0.93 : 0.90, count);
  }
}

TEST_P(Coverage, ShortWindowsOnTwoDays) {
  const int count = runs(50);
  expect_held(play({.minutes = 5, .ratio = GetParam()}, count), long_tier() ? 0.93 : 0.90, count);
}

TEST_P(Coverage, ShortWindowsWithoutADay) {
  for (const std::size_t minutes : {3U, 5U, 10U, 60U}) {
    const int count = runs(50);
    expect_held(play({.minutes = minutes, .ratio = GetParam(), .day = false, .apart = 10}, count),
                long_tier() ? 0.93 : 0.90, count);
  }
}

TEST(Power, ThreefoldFromThreeMinutesAndHalfAgainFromAnHour) {
  const int count = runs(40);
  const test::SimulatedDisk steady{.bursts_a_minute = 0, .ios = 4000};
  for (const auto& [minutes, ratio] : {std::pair{3U, 3.0}, {5U, 3.0}, {10U, 3.0}, {60U, 1.5}}) {
    const Tallies found = play({.minutes = minutes, .ratio = ratio, .apart = 10, .disk = steady}, count);
    EXPECT_GE(found.rows.at("read.p50").worse, count * 9 / 10);
    EXPECT_GE(found.rows.at("read.p99").worse, count * 9 / 10);
    // A burst of slow I/O that makes the p99 by itself is no reason to doubt the median.
    const Tallies beside_bursts = play({.minutes = minutes, .ratio = ratio, .apart = 10, .disk = {.ios = 4000}}, count);
    EXPECT_GE(beside_bursts.rows.at("read.p50").worse, count * 9 / 10);
  }
}

INSTANTIATE_TEST_SUITE_P(Ratios, Coverage, testing::Values(1.0, 0.5, 3.0));

}  // namespace
}  // namespace ssdpulse
