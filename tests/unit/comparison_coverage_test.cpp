// SPDX-License-Identifier: Apache-2.0
// Do the intervals of a comparison hold the truth as often as they claim? Simulated minutes whose true ratio is known:
// few in CI, 10,000 runs of each case in the long tier.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

#include "daemon/analysis/comparison/comparison.h"
#include "tests/unit/simulated_minutes.h"

namespace ssdpulse {
namespace {

using namespace analysis::comparison;

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
  [[nodiscard]] double held_or_silent() const { return static_cast<double>(held + runs - claims) / runs; }
};

std::map<std::string, Tally> play(std::size_t minutes, double ratio, int count) {
  std::map<std::string, Tally> tallies;
  for (int run = 0; run < count; ++run) {
    const auto seed = static_cast<std::uint64_t>(run) * 2 + 1;
    // The same hours on two days; which hours differs from run to run.
    test::SimulatedDisk disk{.first_hour = run * 0.618 * 24};
    Question question;
    question.chance = {.draws = long_tier() ? 1000U : 300U, .seed = seed};
    question.before = Side{{}, test::simulate_minutes(disk, minutes, seed), {}};
    disk.ratio = ratio;
    question.after = Side{{}, test::simulate_minutes(disk, minutes, seed + 1, 1440), {}};
    for (const Row& row : compare(question).rows) {
      if (row.unit != Unit::seconds) {
        continue;
      }
      Tally& tally = tallies[row.id];
      ++tally.runs;
      tally.better += row.verdict == Verdict::better;
      tally.worse += row.verdict == Verdict::worse;
      tally.same += row.verdict == Verdict::same;
      if (row.raw) {
        ++tally.claims;
        tally.held += row.raw->lower <= ratio && ratio <= row.raw->upper;
      }
    }
  }
  for (const auto& [id, tally] : tallies) {
    std::printf(
        "%zu minutes, ratio %.1f, %-10s: %5d runs, %5d intervals, %.3f hold; better %.4f worse %.4f same %.4f\n",
        minutes, ratio, id.c_str(), tally.runs, tally.claims, tally.coverage(),
        tally.better / static_cast<double>(tally.runs), tally.worse / static_cast<double>(tally.runs),
        tally.same / static_cast<double>(tally.runs));
  }
  return tallies;
}

class Coverage : public testing::TestWithParam<double> {};

TEST_P(Coverage, EightHours) {
  const double ratio = GetParam();
  const int count = runs(100);
  const double least = long_tier() ? 0.92 : 0.90;
  const double most = long_tier() ? 0.97 : 0.99;
  for (const auto& [id, tally] : play(480, ratio, count)) {
    EXPECT_GE(tally.coverage(), least) << id;
    EXPECT_LE(tally.coverage(), most) << id;
    EXPECT_LE(ratio == 1 ? tally.better + tally.worse : tally.worse, count / 20) << id;
    EXPECT_GE(tally.claims, id == "read.p99.9" ? 0 : count * 9 / 10) << id;
    if (ratio == 0.5) {
      EXPECT_GE(tally.better, id == "read.p99.9" ? 0 : count * 95 / 100) << id;
    }
  }
}

TEST_P(Coverage, OneHour) {
  const double ratio = GetParam();
  const int count = runs(300);
  for (const auto& [id, tally] : play(60, ratio, count)) {
    EXPECT_GE(tally.held_or_silent(), 0.88) << id;
    EXPECT_LE(ratio == 1 ? tally.better + tally.worse : tally.worse, count / 20) << id;
  }
}

INSTANTIATE_TEST_SUITE_P(Ratios, Coverage, testing::Values(1.0, 0.9, 0.5));

}  // namespace
}  // namespace ssdpulse
