// SPDX-License-Identifier: Apache-2.0
// What does a comparison claim, and refuse to claim? How often its intervals hold: comparison_coverage_test.cpp.
#include "daemon/compare/comparison.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "daemon/compare/load_classes.h"
#include "daemon/compare/verdict.h"
#include "daemon/compare/window_estimate.h"
#include "daemon/compare/window_figures.h"
#include "tests/unit/simulated_minutes.h"

namespace ssdpulse::compare {
namespace {

using namespace std::chrono_literals;
using model::PastTime;
using test::SimulatedDisk;

constexpr std::size_t kMinutes = 480;
const PastTime kBefore{std::chrono::minutes(29'000'000)};
const PastTime kAfter = kBefore + std::chrono::minutes(kMinutes) + 10min;

/// No dependence on the hour of the day, and no bursts.
SimulatedDisk disk(double ratio = 1, double load = 1) {
  return {.ratio = ratio, .load = load, .bursts_a_minute = 0, .day_swing = 0};
}

Side side(const SimulatedDisk& simulated, PastTime begin, std::uint64_t seed, std::size_t minutes = kMinutes) {
  return {{begin, begin + std::chrono::minutes(minutes)},
          test::simulate_minutes(simulated, minutes, seed, begin.time_since_epoch().count()),
          {}};
}

Question question(const SimulatedDisk& before, const SimulatedDisk& after, std::size_t minutes = kMinutes) {
  Question asked;
  asked.device.name = "nvme0n1";
  asked.before = side(before, kBefore, 1, minutes);
  asked.after = side(after, kAfter, 2, minutes);
  return asked;
}

const Row* find(const Comparison& comparison, const std::string& id) {
  const auto found =
      std::find_if(comparison.rows.begin(), comparison.rows.end(), [&](const Row& row) { return row.id == id; });
  return found == comparison.rows.end() ? nullptr : &*found;
}

std::optional<Verdict> verdict(const Comparison& comparison, const std::string& id) {
  const Row* row = find(comparison, id);
  return row == nullptr ? std::nullopt : row->verdict;
}

bool noted(const Comparison& comparison, const std::string& id) {
  return std::any_of(comparison.notes.begin(), comparison.notes.end(), [&](const Note& note) { return note.id == id; });
}

/// A drive whose host writes `host` bytes per minute, and which writes `amplification` times as many, varying by
/// `variation`.
void add_wear(Side& of, double amplification, double host, double grain, double variation = 0.2) {
  double media = 0;
  double shown = 0;
  for (PastTime at = of.window.from; at < of.window.to; at += 1min) {
    model::PastWear point;
    point.at = at;
    const double wobble = 1 + variation * std::sin(static_cast<double>(at.time_since_epoch().count()));
    media += amplification * host * wobble;
    const double now = std::floor(media / grain) * grain;
    point.media_bytes = now - shown;
    point.host_bytes = host;
    shown = now;
    of.wear.push_back(point);
  }
}

TEST(Student, HasTheQuantilesOfTheTables) {
  EXPECT_NEAR(student_quantile(0.025, 1), 12.706, 1e-3);
  EXPECT_NEAR(student_quantile(0.025, 10), 2.228, 1e-3);
  EXPECT_NEAR(student_quantile(0.025, 1e6), 1.960, 1e-3);
  EXPECT_NEAR(student_tail(2.228, 10), 0.025, 1e-4);
  EXPECT_EQ(student_tail(0, 10), 0.5);
}

TEST(LatencyQuantile, IsBetweenTheBoundsOfItsBucket) {
  std::vector<double> words(211);
  words[161] = 100;  // (2^(-1/8), 1] seconds
  EXPECT_NEAR(*log_quantile(words, 0.5), -std::log(2) / 16, 1e-12);
  EXPECT_NEAR(samples_above(words, -std::log(2) / 16), 50, 1e-9);
  EXPECT_NEAR(*log_quantile({words.data() + 100, 100}, 0.5, 100), -std::log(2) / 16, 1e-12);
  words[210] = 101;  // above 64 s
  EXPECT_FALSE(log_quantile(words, 0.9).has_value());
  EXPECT_FALSE(log_quantile(std::vector<double>(211), 0.5).has_value());
}

TEST(LatencyQuantile, NeedsThirtySamplesBeyond) {
  EXPECT_EQ(samples_needed(0.99), 3000U);
  EXPECT_EQ(samples_needed(0.999), 30000U);
}

TEST(BlockLength, FollowsTheCorrelation) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  const auto wanted = [&](double correlation) {
    std::vector<double> series(2000);
    double level = 0;
    for (double& value : series) {
      value = level = correlation * level + normal(random);
    }
    return block_length(series).minutes;
  };
  EXPECT_LE(wanted(0), 15U);
  EXPECT_GE(wanted(0.9), 40U);
  EXPECT_EQ(block_length(std::vector<double>(100, 1.0)).minutes, 5U);
  EXPECT_EQ(block_length(std::vector<double>(16)).minutes, 2U);  // an eighth
}

TEST(BlockDraws, DrawNeighboursInACircle) {
  MinuteSums sums{1, {1, 10, 100, 1000}};
  std::vector<double> seen;
  BlockDraws(sums, 2).draw(500, 1, [&](std::span<const double> drawn) { seen.push_back(drawn[0]); });
  std::sort(seen.begin(), seen.end());
  seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
  // Two of 11, 110, 1100 and 1001, possibly the same one twice.
  EXPECT_EQ(seen, (std::vector<double>{22, 121, 220, 1012, 1111, 1210, 2002, 2101, 2200}));
}

TEST(Estimate, HasTheVarianceOfItsBlocksAndCountsItsDoubtOnce) {
  // A sum over minutes that differ from one to the next, so that blocks lose no correlation. The variance of the draws
  // is then that of a sum of blocks, computed over all blocks.
  constexpr std::size_t kCount = 64;
  MinuteSums sums{1, {}};
  for (std::size_t i = 0; i < kCount; ++i) {
    sums.cells.push_back(static_cast<double>(i * 37 % kCount));
  }
  Figure sum;
  sum.log_value = [](Figure::Sums total) { return std::optional(total[0]); };
  sum.mass = [](Figure::Sums, double) { return 1.0; };
  const auto estimated = estimate(sums, sum, {.draws = 100'000, .seed = 1});
  ASSERT_TRUE(estimated);
  ASSERT_EQ(estimated->block_minutes, 8U);
  double squares = 0;
  for (std::size_t start = 0; start < kCount; ++start) {
    double block = -8.0 * (kCount - 1) / 2;
    for (std::size_t i = 0; i < 8; ++i) {
      block += sums.cells[(start + i) % kCount];
    }
    squares += block * block;
  }
  // Eight blocks, which are closer to their own mean than to the true one by an eighth.
  EXPECT_NEAR(estimated->variance / (8 * squares / kCount / (1 - 1.0 / 8)), 1, 0.03);
  EXPECT_EQ(estimated->degrees, 1.5 * (8 - 1));  // the only account of how uncertain the variance is
}

TEST(HodgesLehmann, IsTheMedianOfDifferences) {
  EXPECT_EQ(hodges_lehmann_shift({1, 2, 3}, {2, 3, 100}), 1);
  EXPECT_FALSE(hodges_lehmann_shift({}, {1}).has_value());
}

TEST(Holm, ShowsTheSmallestFirst) {
  const auto shown = [](const std::vector<std::optional<double>>& p_values) {
    std::vector<std::optional<Change>> changes;
    for (const auto& p : p_values) {
      changes.push_back(p ? std::optional(Change{.p_value = *p}) : std::nullopt);
    }
    const std::vector<double> levels = holm(changes);
    std::vector<bool> result;
    for (std::size_t i = 0; i < levels.size(); ++i) {
      result.push_back(p_values[i] && *p_values[i] <= levels[i]);
    }
    return result;
  };
  EXPECT_EQ(shown({0.02, 0.001, std::nullopt, 0.02}), (std::vector<bool>{true, true, false, true}));
  EXPECT_EQ(shown({0.02, 0.03, 0.001}), (std::vector<bool>{true, true, true}));
  EXPECT_EQ(shown({0.03, 0.03, 0.001}), (std::vector<bool>{false, false, true}));
  EXPECT_EQ(shown({0.02, 0.02, 0.02}), (std::vector<bool>{false, false, false}));
}

TEST(Verdict, IsByTheIntervalAndTheMargin) {
  const auto by = [](double ratio, double lower, double upper, double p_value) {
    return verdict_of(Change{.ratio = ratio, .lower = lower, .upper = upper, .p_value = p_value}, 0.05);
  };
  EXPECT_EQ(by(1.0, 0.95, 1.05, 1), Verdict::same);
  EXPECT_EQ(by(1.0, 0.5, 2.0, 1), Verdict::cannot_tell);
  EXPECT_EQ(by(0.5, 0.4, 0.6, 0.01), Verdict::better);
  EXPECT_EQ(by(2.0, 1.5, 2.5, 0.01), Verdict::worse);
  EXPECT_EQ(by(0.5, 0.4, 0.6, 0.06), Verdict::cannot_tell);  // rejected by Holm
}

TEST(Verdict, CannotTellExactlyIfTheCorrectedIntervalHoldsOne) {
  for (const double level : {0.05, 0.01, 0.0036}) {
    for (double ratio = 1.2; ratio < 6; ratio *= 1.01) {
      const Change change = change_by(std::log(ratio), 0.09, 7, 0.044);
      const Interval interval = corrected(change, level);
      EXPECT_EQ(verdict_of(change, level) == Verdict::cannot_tell, interval.lower <= 1 && interval.upper >= 1) << ratio;
    }
  }
}

TEST(LoadMatch, DetectsADifferentLoad) {
  const std::vector<Rates> hundred(60, Rates{100e6, 0});
  const std::vector<Rates> threehundred(60, Rates{300e6, 0});
  EXPECT_EQ(match_load(hundred, threehundred).common, 0);
  const std::vector<Rates> nearly(60, Rates{110e6, 0});
  EXPECT_NEAR(match_load(hundred, nearly).common, 1, 1e-9);
  std::vector<Rates> mixed = hundred;
  mixed.insert(mixed.end(), threehundred.begin(), threehundred.begin() + 20);
  const LoadMatch match = match_load(mixed, hundred);
  EXPECT_NEAR(match.common, 0.75, 1e-9);
  EXPECT_EQ(match.before.back(), 0);
  EXPECT_NEAR(match.after[0], 0.75, 1e-9);
}

TEST(Compare, HalfIsBetterAndDoubleIsWorse) {
  const Comparison better = compare(question(disk(), disk(0.5)));
  EXPECT_EQ(verdict(better, "read.p99"), Verdict::better);
  EXPECT_NEAR(find(better, "read.p99")->raw->ratio, 0.5, 0.1);
  EXPECT_NEAR(*find(better, "read.p50")->before, 200e-6, 30e-6);
  EXPECT_NEAR(*find(better, "read.p50")->usual, 0.5, 0.1);
  EXPECT_FALSE(any_worse(better));
  const Comparison worse = compare(question(disk(), disk(2)));
  EXPECT_EQ(verdict(worse, "read.p99"), Verdict::worse);
  EXPECT_TRUE(any_worse(worse));
}

TEST(Compare, IdenticalWindowsAreTheSameHoweverShort) {
  Question asked = question(disk(), disk(), 3);
  asked.after = *asked.before;
  add_wear(*asked.before, 2, 1e9, 1);
  asked.after.wear = asked.before->wear;
  const Comparison same = compare(asked);
  ASSERT_FALSE(same.rows.empty());
  for (const Row& row : same.rows) {
    EXPECT_EQ(row.verdict, Verdict::same) << row.id;
  }
}

TEST(Compare, AnswersAlikeTwice) {
  const Question asked = question(disk(), disk(0.9));
  const Comparison once = compare(asked);
  const Comparison again = compare(asked);
  for (std::size_t i = 0; i < once.rows.size(); ++i) {
    ASSERT_EQ(once.rows[i].raw.has_value(), again.rows[i].raw.has_value());
    if (once.rows[i].raw) {
      EXPECT_EQ(once.rows[i].raw->lower, again.rows[i].raw->lower);
    }
  }
}

TEST(Compare, DifferentLoadIsNotComparable) {
  const Comparison other = compare(question(disk(), disk(1, 4)));
  for (const Row& row : other.rows) {
    EXPECT_EQ(row.verdict, Verdict::not_comparable) << row.id;
  }
  EXPECT_TRUE(noted(other, "other-load"));
}

TEST(Compare, ALoadThatDiffersIsAdjustedFor) {
  // A third of the minutes before have four times the load, and are slower; after, all have the low load and its
  // latency.
  Question asked = question(disk(), disk());
  const auto busy = test::simulate_minutes(disk(4, 4), kMinutes / 3, 7, kBefore.time_since_epoch().count());
  std::copy(busy.begin(), busy.end(), asked.before->minutes.begin());
  const Comparison compared = compare(asked);
  EXPECT_NEAR(compared.common_load, 2.0 / 3, 0.02);
  const Row* row = find(compared, "read.p50");
  ASSERT_TRUE(row->adjusted) << row->reason;
  EXPECT_LT(*row->after, 0.7 * *row->before);  // raw ratio
  EXPECT_NEAR(row->adjusted->ratio, 1, 0.1);
  EXPECT_NE(row->verdict, Verdict::better);
  EXPECT_TRUE(noted(compared, "adjusted"));
}

TEST(Compare, WearADayGoesWithALoadThatDiffers) {
  const auto asked_with = [](bool other_load) {
    Question asked = question(disk(), disk());
    if (other_load) {
      const auto busy = test::simulate_minutes(disk(1, 4), kMinutes / 3, 7, kBefore.time_since_epoch().count());
      std::copy(busy.begin(), busy.end(), asked.before->minutes.begin());
    }
    add_wear(*asked.before, 2, 2e9, 1);
    add_wear(asked.after, 2, 1e9, 1);
    const auto rise = [](Side& of, double by) {
      for (std::size_t i = 0; i < of.wear.size(); ++i) {
        of.wear[i].percentage_used = std::floor(100 * by * static_cast<double>(i) / (kMinutes - 1)) / 100;
      }
    };
    rise(*asked.before, 0.20);
    rise(asked.after, 0.05);
    return compare(asked);
  };
  const Comparison alike = asked_with(false);
  ASSERT_FALSE(alike.load_differs);
  EXPECT_EQ(verdict(alike, "wear.media_bytes"), Verdict::better);
  EXPECT_EQ(verdict(alike, "wear.percentage_used"), Verdict::better);
  const Comparison other = asked_with(true);
  ASSERT_TRUE(other.load_differs && other.common_load >= kMinCommonShare);
  for (const char* id : {"wear.media_bytes", "wear.percentage_used"}) {
    EXPECT_EQ(verdict(other, id), Verdict::not_comparable) << id;
    EXPECT_EQ(find(other, id)->reason, "the load differs, and this goes with it") << id;
    EXPECT_FALSE(find(other, id)->hours_needed) << id;
  }
  EXPECT_EQ(verdict(other, "wear.write_amplification"), Verdict::same);
}

TEST(Compare, OneWindowHasNoVerdicts) {
  Question asked = question(disk(), disk());
  asked.before.reset();
  const Comparison alone = compare(asked);
  ASSERT_NE(find(alone, "read.p99"), nullptr);
  EXPECT_FALSE(verdict(alone, "read.p99").has_value());
  EXPECT_TRUE(find(alone, "read.p99")->after.has_value());
}

TEST(Compare, MissingMinutesAreNotZero) {
  Question asked = question(disk(), disk());
  const Comparison whole = compare(asked);
  asked.after.minutes.resize(kMinutes / 2);
  const Comparison half = compare(asked);
  EXPECT_TRUE(noted(half, "missing-after"));
  EXPECT_FALSE(noted(whole, "missing-after"));
  EXPECT_NEAR(*half.load[0].after, *half.load[0].before, 0.2 * *half.load[0].before);  // a rate over the measured time
}

TEST(Compare, AFewMinutesDecideNothing) {
  // One window has a single burst that determines its p99.9.
  Question asked = question(disk(), disk());
  SimulatedDisk slow = disk(8);
  const auto burst = test::simulate_minutes(slow, 6, 9, 0);
  for (std::size_t i = 0; i < burst.size(); ++i) {
    model::add(asked.after.minutes[100 + i].load, burst[i].load);
  }
  const Comparison compared = compare(asked);
  EXPECT_EQ(verdict(compared, "read.p99.9"), Verdict::cannot_tell);
  EXPECT_GT(find(compared, "read.p99.9")->hours_needed.value_or(0), 8);
}

// Windows of a few minutes.

/// Commits whose median is `seconds`, spread within a minute as `factors`, `count` of them a minute.
std::vector<model::MinuteOf> commits(PastTime begin, std::size_t minutes, double seconds, double count,
                                     std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<model::MinuteOf> result;
  for (std::size_t i = 0; i < minutes; ++i) {
    model::MinuteOf minute;
    minute.start = begin + std::chrono::minutes(i);
    minute.load.measured_ms = 60000;
    const double level = std::log2(seconds) + 0.2 * normal(random);
    std::map<std::uint8_t, std::uint64_t> words;
    for (int io = 0; io < count; ++io) {
      ++words[static_cast<std::uint8_t>(std::lround(8 * (level + 0.8 * normal(random)) + 161))];
    }
    minute.load.latency(model::Latency::commit).words.assign(words.begin(), words.end());
    model::OperationInterval& writes = minute.load.operations[index(model::Operation::write)];
    writes.ios = static_cast<std::uint64_t>(count);
    writes.bytes = writes.ios * 8192;
    result.push_back(std::move(minute));
  }
  return result;
}

struct Commits {
  double seconds;
  double a_minute;
};

Question few_minutes(std::size_t minutes, const Commits& before, const Commits& after, std::size_t day) {
  Question asked;
  asked.before = Side{{kBefore, kBefore + std::chrono::minutes(minutes)},
                      commits(kBefore, minutes, before.seconds, before.a_minute, 1),
                      {}};
  const PastTime later = kBefore + std::chrono::minutes(minutes + 2);
  asked.after = Side{
      {later, later + std::chrono::minutes(minutes)}, commits(later, minutes, after.seconds, after.a_minute, 2), {}};
  asked.day = commits(kBefore - std::chrono::minutes(day), day, before.seconds, before.a_minute, 3);
  return asked;
}

TEST(FewMinutes, ThreeAndAHalfTimesIsWorse) {
  const Comparison compared = compare(few_minutes(3, {2.34e-3, 2700}, {8.42e-3, 2300}, 600));
  const Row* row = find(compared, "commit.p50");
  EXPECT_EQ(row->verdict, Verdict::worse) << row->reason;
  EXPECT_NEAR(row->raw->ratio, 8.42 / 2.34, 1);
  EXPECT_EQ(row->from, IntervalFrom::last_day);
  EXPECT_TRUE(noted(compared, "last-day"));
}

TEST(FewMinutes, TwentyEightTimesIsWorseThoughTheLoadFell) {
  const Comparison compared = compare(few_minutes(3, {2.09e-3, 1300}, {57.8e-3, 433}, 600));
  ASSERT_LT(compared.common_load, kMinCommonShare);
  EXPECT_EQ(verdict(compared, "commit.p50"), Verdict::worse) << find(compared, "commit.p50")->reason;
  EXPECT_TRUE(noted(compared, "less-load"));
  const Comparison back = compare(few_minutes(3, {57.8e-3, 433}, {2.09e-3, 1300}, 600));
  EXPECT_EQ(verdict(back, "commit.p50"), Verdict::better);
  EXPECT_TRUE(noted(back, "more-load"));
  const Comparison quiet = compare(few_minutes(3, {57.8e-3, 1300}, {2.09e-3, 433}, 600));
  EXPECT_EQ(verdict(quiet, "commit.p50"), Verdict::not_comparable);  // faster because there is less to do
}

TEST(FewMinutes, SlowerUnderMoreLoadIsNotComparableButShown) {
  const Comparison compared = compare(few_minutes(3, {2.09e-3, 600}, {57.8e-3, 2000}, 600));
  EXPECT_EQ(verdict(compared, "commit.p50"), Verdict::not_comparable);
  EXPECT_TRUE(find(compared, "commit.p50")->raw);
}

TEST(FewMinutes, WithoutADayTheChangeIsShownAllTheSame) {
  const Comparison compared = compare(few_minutes(3, {2.34e-3, 2700}, {2.5e-3, 2700}, 0));
  const Row* row = find(compared, "commit.p50");
  ASSERT_TRUE(row->raw);
  EXPECT_EQ(row->verdict, Verdict::cannot_tell);
  EXPECT_EQ(row->from, IntervalFrom::few_minutes);
  EXPECT_TRUE(noted(compared, "no-last-day"));
}

TEST(FewMinutes, NoneDiffersFromTooFew) {
  Question asked = few_minutes(3, {2e-3, 2700}, {2e-3, 300}, 0);
  EXPECT_EQ(verdict(compare(asked), "commit.p99"), Verdict::too_few);
  EXPECT_FALSE(find(compare(asked), "commit.p99")->raw);
  for (model::MinuteOf& minute : asked.after.minutes) {
    minute.load.latency(model::Latency::commit) = {};
  }
  EXPECT_EQ(verdict(compare(asked), "commit.p99"), Verdict::no_data);
}

// What must not be claimed.

TEST(Refused, AQuantileOfAQuietDisk) {
  SimulatedDisk quiet = disk();
  quiet.ios = 20;  // 9,600 in eight hours: a p99 is known, a p99.9 is not
  const Comparison compared = compare(question(quiet, quiet));
  EXPECT_TRUE(find(compared, "read.p99")->before.has_value());
  EXPECT_FALSE(find(compared, "read.p99.9")->before.has_value());
  EXPECT_FALSE(find(compared, "read.p99.9")->after.has_value());
  EXPECT_EQ(verdict(compared, "read.p99.9"), Verdict::too_few);
  EXPECT_EQ(find(compared, "read.p99.99"), nullptr);
}

TEST(Refused, NoDifferenceFromAWideInterval) {
  SimulatedDisk wild = disk();
  wild.level_spread = 0.5;
  const Comparison compared = compare(question(wild, wild));
  const Row* row = find(compared, "read.p99");
  ASSERT_TRUE(row->raw);
  EXPECT_GT(row->raw->upper / row->raw->lower, 1.21);
  EXPECT_EQ(row->verdict, Verdict::cannot_tell);
  EXPECT_GT(row->hours_needed.value_or(0), 8);
}

TEST(Refused, ACauseWhereSeveralSettingsDiffer) {
  Question asked = question(disk(), disk(0.5));
  const model::WallTime between = kAfter - 10min;
  asked.settings = {{between, "nvme0n1", "queue.scheduler", "mq-deadline", "none"}};
  const Comparison one = compare(asked);
  EXPECT_TRUE(noted(one, "one-setting"));
  EXPECT_FALSE(noted(one, "several-settings"));
  asked.settings.push_back({between, "", "mount.options", "discard", "nodiscard"});
  const Comparison two = compare(asked);
  EXPECT_TRUE(noted(two, "several-settings"));
  EXPECT_FALSE(noted(two, "one-setting"));
  EXPECT_EQ(two.differing.size(), 2U);
  asked.settings.push_back({kBefore + 60min, "", "kernel", "6.1", "6.12"});
  EXPECT_TRUE(noted(compare(asked), "changed-inside"));
  EXPECT_TRUE(noted(two, "one-switch"));
}

TEST(Refused, BetterRightAfterATrim) {
  Question asked = question(disk(), disk(0.5));
  auto trim = asked.after.minutes[0];
  trim.start = kAfter - 5min;
  trim.load.operations[index(model::Operation::discard)].bytes = 500'000'000'000;
  asked.between = {trim};
  const Comparison fresh = compare(asked);
  EXPECT_EQ(verdict(fresh, "read.p99"), Verdict::not_comparable);
  EXPECT_TRUE(noted(fresh, "fresh-drive"));
  // The same amount has been written again.
  asked.after.minutes.back().load.operations[index(model::Operation::write)].bytes = 600'000'000'000;
  EXPECT_FALSE(noted(compare(asked), "fresh-drive"));
}

TEST(Refused, ALongerLifeFromTwoWriteAmplifications) {
  Question asked = question(disk(), disk());
  add_wear(*asked.before, 4, 1e9, 1);
  add_wear(asked.after, 2, 1e9, 1);
  const Comparison compared = compare(asked);
  EXPECT_EQ(verdict(compared, "wear.write_amplification"), Verdict::better);
  EXPECT_NEAR(*find(compared, "wear.write_amplification")->after, 2, 0.05);
  EXPECT_NEAR(*find(compared, "wear.media_bytes")->after, 2 * 1e9 * 1440, 0.05 * 2e9 * 1440);
  EXPECT_EQ(find(compared, "wear.percentage_used"), nullptr);  // the drive did not report it
  EXPECT_TRUE(noted(compared, "no-life"));
}

TEST(Refused, SteadyStateBeforeADriveIsWritten) {
  Question asked = question(disk(), disk());
  add_wear(*asked.before, 2, 1e9, 1);
  add_wear(asked.after, 2, 1e9, 1);
  EXPECT_TRUE(noted(compare(asked), "not-settled"));
  asked.capacity_bytes = 1e12;
  EXPECT_TRUE(noted(compare(asked), "not-settled"));
  for (Side* of : {&*asked.before, &asked.after}) {
    of->minutes[0].load.operations[index(model::Operation::write)].bytes = 2'000'000'000'000;
  }
  EXPECT_FALSE(noted(compare(asked), "not-settled"));
}

TEST(Refused, RejectsLoadFromOtherRun) { EXPECT_TRUE(noted(compare(question(disk(), disk())), "this-load")); }

TEST(Wear, CoarseCountersWidenTheInterval) {
  const auto width = [](double grain) {
    Question asked = question(disk(), disk());
    add_wear(*asked.before, 2, 1e9, grain);
    add_wear(asked.after, 2.1, 1e9, grain);
    const Row* row = nullptr;
    const Comparison compared = compare(asked);
    row = find(compared, "wear.write_amplification");
    return row->raw ? row->raw->upper / row->raw->lower : -1;
  };
  EXPECT_GT(width(16e9), width(1));
  EXPECT_EQ(width(200e9), -1);  // 480 GB in all: no ratio within 5 %
}

TEST(Wear, TheIntervalHoldsWhatCoarseCountersAllow) {
  constexpr double kMediaStep = 4e9;
  constexpr double kHostStep = 2e9;
  Question asked = question(disk(), disk());
  // Nothing varies, so by chance alone the interval would be narrow: in each minute both counters move by one step, in
  // one minute the media counter by two.
  add_wear(*asked.before, 2, kHostStep, kMediaStep, 0);
  add_wear(asked.after, 2, kHostStep, kMediaStep, 0);
  asked.after.wear[9].media_bytes = 2 * kMediaStep;
  const auto amplification = [](const Side& of, double media_error, double host_error) {
    double media = media_error;
    double host = host_error;
    for (std::size_t i = 1; i < of.wear.size(); ++i) {  // the first reading has no predecessor
      media += *of.wear[i].media_bytes;
      host += *of.wear[i].host_bytes;
    }
    return media / host;
  };
  const Comparison compared = compare(asked);
  const auto& raw = find(compared, "wear.write_amplification")->raw;
  ASSERT_TRUE(raw);
  const double most =
      amplification(asked.after, kMediaStep, -kHostStep) / amplification(*asked.before, -kMediaStep, kHostStep);
  const double least =
      amplification(asked.after, -kMediaStep, kHostStep) / amplification(*asked.before, kMediaStep, -kHostStep);
  EXPECT_GE(raw->upper, most * (1 - 1e-12));
  EXPECT_LE(raw->lower, least * (1 + 1e-12));
}

TEST(Wear, AnIdleDriveHasNoWriteAmplificationThatStaysTheSame) {
  Question asked = question(disk(), disk());
  add_wear(*asked.before, 0, 0, 1);
  add_wear(asked.after, 0, 0, 1);
  const Comparison compared = compare(asked);
  EXPECT_FALSE(find(compared, "wear.write_amplification")->raw);
  EXPECT_EQ(verdict(compared, "wear.write_amplification"), Verdict::too_few);
  EXPECT_EQ(verdict(compared, "wear.media_bytes"), Verdict::too_few);
}

TEST(Wear, PercentsUsedRiseFromTheFirstReadingToTheLast) {
  Question asked = question(disk(), disk());
  asked.before.reset();
  add_wear(asked.after, 2, 1e9, 1);
  auto& readings = asked.after.wear;
  for (std::size_t i = 0; i < readings.size(); ++i) {
    readings[i].percentage_used = i == 0 ? 0.10 : i + 1 < readings.size() ? 0.12 : 0.13;
    if (i % 3 == 0) {
      readings[i].media_bytes.reset();
    }
  }
  const Comparison alone = compare(asked);
  const Row* row = find(alone, "wear.percentage_used");
  ASSERT_NE(row, nullptr);
  EXPECT_NEAR(row->after.value(), 0.03 * 1440 / static_cast<double>(readings.size() - 1), 1e-9);
  EXPECT_FALSE(row->verdict) << "there is only one window";
  EXPECT_EQ(row->reason, "");
}

TEST(Wear, PercentsUsedDifferForSureOrNotAtAll) {
  const auto ask = [](double before, double after) {
    Question asked = question(disk(), disk());
    add_wear(*asked.before, 2, 1e9, 1);
    add_wear(asked.after, 2, 1e9, 1);
    const auto rise = [](Side& of, double by) {
      for (std::size_t i = 0; i < of.wear.size(); ++i) {
        of.wear[i].percentage_used = std::floor(100 * by * static_cast<double>(i) / 479) / 100;
      }
    };
    rise(*asked.before, before);
    rise(asked.after, after);
    return verdict(compare(asked), "wear.percentage_used");
  };
  EXPECT_EQ(ask(0.10, 0.03), Verdict::better);
  EXPECT_EQ(ask(0.03, 0.031), Verdict::cannot_tell);
  EXPECT_EQ(ask(0.10, 0.01), Verdict::too_few);  // a percentage point is a step, not a rate
  EXPECT_FALSE(ask(0.0, 0.001).has_value());
}

}  // namespace
}  // namespace ssdpulse::compare
