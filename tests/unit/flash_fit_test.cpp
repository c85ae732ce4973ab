// SPDX-License-Identifier: Apache-2.0
// Is a hidden drive's over-provisioning found, and do two real drives follow the model? The figures for real drives
// were measured in one laboratory, on one drive each: uniform writes to a part of a Micron 7450 MAX (745.2 GiB), zipf
// writes to a Solidigm P5520 (1788.5 GiB).
#include "daemon/flash/flash_fit.h"

#include <gtest/gtest.h>

#include <cmath>

#include "daemon/flash/flash_model.h"
#include "daemon/flash/offline_model.h"
#include "daemon/model/block_io.h"
#include "tests/unit/flash_loads.h"
#include "tests/unit/flash_tier.h"

namespace ssdpulse::flash {
namespace {

using model::CollectionPolicy;
using test::FlashLoad;

constexpr std::uint64_t kPageBytes = 4096;
constexpr std::array kGrid{0.04, 0.055, 0.07, 0.09, 0.12, 0.16, 0.21, 0.28, 0.38, 0.50};

double uniform_limit(double alpha) {
  double valid = 0.5;
  for (int i = 0; i < 10'000; ++i) {
    valid = std::exp(-alpha * (1 - valid));
  }
  return 1 / (1 - valid);
}

void play(OfflineModel& model, const FlashLoad& load, double drive_writes) {
  const double until =
      static_cast<double>(model.written_pages()) + drive_writes * static_cast<double>(model.drive_pages());
  while (static_cast<double>(model.written_pages()) < until) {
    const auto operation = load();
    operation.discard ? model.discard(operation.first * kPageBytes, operation.count * kPageBytes)
                      : model.write(operation.first * kPageBytes, operation.count * kPageBytes, operation.hint);
  }
}

/// A fully simulated drive measures itself; a sample of it runs with all over-provisionings of the grid.
std::optional<BoundedValue> found_again(double hidden, const FlashLoad& load, CollectionPolicy policy) {
  constexpr std::uint64_t kPages = 1 << 19;
  OfflineModel drive({kPages * kPageBytes, kPageBytes, std::nullopt, true, 0, {{hidden, policy}}});
  OfflineSettings settings{kPages * kPageBytes, kPageBytes, PageSample::kUsualPages, true, 3, {}};
  for (const double overprovisioning : kGrid) {
    settings.what_ifs.push_back({overprovisioning, policy});
  }
  OfflineModel sample(settings);
  while (drive.written_pages() < 8 * kPages) {
    const auto operation = load();
    const auto feed = [&](OfflineModel& model) {
      operation.discard ? model.discard(operation.first * kPageBytes, operation.count * kPageBytes)
                        : model.write(operation.first * kPageBytes, operation.count * kPageBytes, operation.hint);
    };
    feed(drive);
    feed(sample);
  }
  std::vector<CurvePoint> curve;
  const auto estimates = sample.estimates({});
  for (std::size_t i = 0; i < kGrid.size(); ++i) {
    curve.push_back({kGrid[i], *estimates[i]});
  }
  return fit_overprovisioning(curve, *drive.estimates({})[0]);
}

TEST(OverprovisioningFit, AHiddenDriveIsFound) {
  constexpr std::uint64_t kPages = 1 << 19;
  const auto expect = [](const char* what, const FlashLoad& load, double tolerance) {
    const auto found = found_again(0.12, load, CollectionPolicy::greedy);
    ASSERT_TRUE(found) << what;
    std::printf("%s: %.4f (%.4f to %.4f)\n", what, found->likely, found->lower, found->upper);
    EXPECT_NEAR(found->likely / 0.12, 1, tolerance) << what;
    EXPECT_LT(found->lower, 0.12) << what;
    EXPECT_GT(found->upper, 0.12) << what;
  };
  test::in_parallel({[&] { expect("uniform", test::uniform_load(kPages, 1), 0.02); },
                     [&] { expect("zipf 0.99", test::zipf_load(kPages, 0.99, 1), 0.05); },
                     [&] { expect("log and random writes", test::wal_load(kPages, 1), 0.06); }});
}

std::vector<CurvePoint> uniform_curve() {
  std::vector<CurvePoint> result;
  for (const double overprovisioning : kGrid) {
    const double ratio = uniform_limit(1 + overprovisioning);
    result.push_back({overprovisioning, {ratio, ratio * 0.98, ratio * 1.02}});
  }
  return result;
}

TEST(OverprovisioningFit, InterpolatesWithinItsDoubt) {
  const auto curve = uniform_curve();
  const std::vector<CurvePoint> exported{curve[2], curve[4], curve[7], curve[9]};  // 0.07, 0.12, 0.28, 0.50
  for (double overprovisioning = 0.07; overprovisioning < 0.50; overprovisioning += 0.01) {
    const double expected = uniform_limit(1 + overprovisioning);
    const auto found = interpolate(exported, overprovisioning);
    ASSERT_TRUE(found) << overprovisioning;
    EXPECT_NEAR(found->ratio / expected, 1, kInterpolationDoubt) << overprovisioning;
    EXPECT_LE(found->lower, expected);
    EXPECT_GE(found->upper, expected);
  }
  EXPECT_FALSE(interpolate(exported, 0.05));
  EXPECT_FALSE(interpolate(exported, 0.51));
  EXPECT_FALSE(interpolate({}, 0.1));
  EXPECT_EQ(interpolate(exported, 0.12)->ratio, curve[4].estimate.ratio);
}

TEST(OverprovisioningFit, BoundsFollowThoseOfBothSides) {
  const auto curve = uniform_curve();
  const double ratio = uniform_limit(1.14);
  const auto sharp = fit_overprovisioning(curve, {ratio, ratio, ratio});
  const auto blurred = fit_overprovisioning(curve, {ratio, ratio * 0.95, ratio * 1.05});
  ASSERT_TRUE(sharp && blurred);
  EXPECT_NEAR(sharp->likely, 0.14, 0.002);
  EXPECT_LT(blurred->lower, sharp->lower);
  EXPECT_GT(blurred->upper, sharp->upper);
  EXPECT_FALSE(fit_overprovisioning(curve, {40, 39, 41}));
  EXPECT_FALSE(fit_overprovisioning(curve, {1.01, 1, 1.02}));
  EXPECT_FALSE(fit_overprovisioning({}, {2, 2, 2}));
}

TEST(OverprovisioningFit, OfSeveralPoliciesTheBoundsAreTheWidest) {
  model::FlashReport report;
  const auto add = [&](double overprovisioning, CollectionPolicy policy, const model::Estimate& estimate) {
    report.amplification.push_back({{overprovisioning, policy}, model::FlashWindow::day, estimate});
  };
  add(0.12, CollectionPolicy::greedy_gc_frontier, {3, 2.8, 3.2});
  add(0.12, CollectionPolicy::greedy, {3.5, 3.1, 3.9});
  add(0.12, CollectionPolicy::cost_benefit, {2.5, 2.1, 2.9});
  add(0.07, CollectionPolicy::greedy, {6, 1, 9});
  EXPECT_EQ(band_of_policies(report, model::FlashWindow::day), (model::Estimate{3, 2.1, 3.9}));
  EXPECT_EQ(band_of_policies(report, model::FlashWindow::week), std::nullopt);
}

TEST(OverprovisioningFit, TakesOverheadOff) {
  const auto clean = without_overhead({2.08, 2.0, 2.16});
  EXPECT_NEAR(clean.ratio, 2, 1e-9);
  EXPECT_NEAR(clean.lower, 2.0 / 1.08, 1e-9);
  EXPECT_NEAR(clean.upper, 2.16, 1e-9);
  EXPECT_EQ(without_overhead({1.01, 1, 1.02}).ratio, 1);
}

// --- which policy

constexpr double kAssumed = 0.15;

/// A hidden drive, and what the daemon would learn from a sample of it, day after day.
class HiddenDrive {
 public:
  HiddenDrive(double overprovisioning, CollectionPolicy policy)
      : drive_({kDrivePages * kPageBytes, kPageBytes, std::nullopt, true, 0, {{overprovisioning, policy}}}),
        sample_(settings()) {}

  /// Two drive writes of a load, followed by a fit.
  bool day(const FlashLoad& load) {
    ++days_;
    while (drive_.written_pages() < days_ * 2 * kDrivePages) {
      const auto operation = load();
      drive_.write(operation.first * kPageBytes, operation.count * kPageBytes, operation.hint);
      sample_.write(operation.first * kPageBytes, operation.count * kPageBytes, operation.hint);
    }
    const OfflineModel::Window today{static_cast<double>(days_ - 1) / static_cast<double>(days_), 1};
    report = {};
    const auto estimates = sample_.estimates(today);
    for (std::size_t i = 0; i < estimates.size(); ++i) {
      report.amplification.push_back({sample_.runs()[i].what(), model::FlashWindow::day, *estimates[i]});
    }
    const double counted = drive_.estimates(today)[0]->ratio;
    measured = {counted, counted * 0.97, counted * 1.03};  // an overhead that is not known exactly
    return fit.add(report, model::FlashWindow::day, measured);
  }

  PolicyFit fit;
  model::FlashReport report;
  model::Estimate measured;

  static constexpr std::uint64_t kDrivePages = 1 << 18;

 private:
  static OfflineSettings settings() {
    OfflineSettings result{kDrivePages * kPageBytes, kPageBytes, PageSample::kUsualPages, true, 3, {}};
    for (const auto policy : kFittedPolicies) {
      result.what_ifs.push_back({kAssumed, policy});
    }
    for (const double overprovisioning : {0.28, 0.07, 0.50, 0.12}) {
      result.what_ifs.push_back({overprovisioning, kMiddlePolicy});
    }
    return result;
  }

  OfflineModel drive_;
  OfflineModel sample_;
  std::uint64_t days_ = 0;
};

TEST(PolicyFit, LoadsThatDifferTellPoliciesApart) {
  const auto expect = [](CollectionPolicy policy) {
    const std::string_view what = model::name(policy, model::kCollectionPolicyNames);
    HiddenDrive drive(0.12, policy);
    drive.day(test::uniform_load(HiddenDrive::kDrivePages, 1));
    for (const auto other : kFittedPolicies) {
      EXPECT_TRUE(drive.fit.possible(other)) << what << ": a uniform load tells nothing of policies";
    }
    for (int day = 0; day < 2; ++day) {
      drive.day(test::hot_cold_load(HiddenDrive::kDrivePages, 0.9, 0.1, false, 2));
    }
    drive.day(test::zipf_load(HiddenDrive::kDrivePages, 0.99, 3));
    for (std::size_t i = 0; i < kFittedPolicies.size(); ++i) {
      const auto& range = drive.fit.ranges()[i];
      std::printf("%s as %s: %.4f (%.4f to %.4f)\n", what.data(),
                  model::name(kFittedPolicies[i], model::kCollectionPolicyNames).data(), range.likely, range.lower,
                  range.upper);
    }
    const auto found = drive.fit.overprovisioning();
    ASSERT_TRUE(found) << what;
    EXPECT_LE(found->lower, 0.12) << what;
    EXPECT_GE(found->upper, 0.12) << what;
    EXPECT_EQ(drive.fit.policy(), policy) << what;
    EXPECT_NEAR(found->likely, 0.12, 0.012) << what;
    const auto modelled = drive.fit.estimate(drive.report, model::FlashWindow::day);
    ASSERT_TRUE(modelled) << what;
    EXPECT_LE(modelled->lower, drive.measured.ratio) << what;
    EXPECT_GE(modelled->upper, drive.measured.ratio) << what;
  };
  test::in_parallel({[&] { expect(CollectionPolicy::greedy); }, [&] { expect(CollectionPolicy::greedy_gc_frontier); },
                     [&] { expect(CollectionPolicy::cost_benefit); }});
}

/// As modelled: all three policies at the assumed over-provisioning, the middle one at others, too. `skew`: how many
/// times the spare flash of a uniform load each policy seems to have.
model::FlashReport made_up(const std::array<double, 3>& skew) {
  model::FlashReport result;
  const auto add = [&](double overprovisioning, CollectionPolicy policy, double times) {
    const double ratio = uniform_limit(1 + overprovisioning * times);
    result.amplification.push_back(
        {{overprovisioning, policy}, model::FlashWindow::day, {ratio, ratio * 0.98, ratio * 1.02}});
  };
  add(kAssumed, kFittedPolicies[0], skew[0]);
  add(kAssumed, kFittedPolicies[1], skew[1]);
  add(kAssumed, kFittedPolicies[2], skew[2]);
  for (const double other : {0.07, 0.12, 0.28, 0.50}) {
    add(other, kMiddlePolicy, skew[1]);
  }
  return result;
}

model::Estimate around(double overprovisioning) {
  const double ratio = uniform_limit(1 + overprovisioning);
  return {ratio, ratio * 0.98, ratio * 1.02};
}

TEST(PolicyFit, OneLoadShowsNothing) {
  PolicyFit fit;
  EXPECT_FALSE(fit.overprovisioning());
  for (int day = 0; day < 50; ++day) {
    EXPECT_TRUE(fit.add(made_up({0.5, 1, 2}), model::FlashWindow::day, around(0.2)));
  }
  EXPECT_FALSE(fit.policy());
  EXPECT_EQ(fit.best(), kMiddlePolicy);
  ASSERT_TRUE(fit.overprovisioning());
  EXPECT_NEAR(fit.overprovisioning()->likely, 0.2, 0.005);
  EXPECT_LE(fit.overprovisioning()->lower, 0.1) << "it may be the policy that needs half as much";
  EXPECT_GE(fit.overprovisioning()->upper, 0.4) << "or twice as much";
}

TEST(PolicyFit, ALoadWithoutRelocationShowsNothing) {
  PolicyFit fit;
  ASSERT_TRUE(fit.add(made_up({0.5, 1, 2}), model::FlashWindow::day, around(0.2)));
  const auto before = fit.ranges();
  model::FlashReport in_order = made_up({1, 1, 1});
  for (auto& found : in_order.amplification) {
    found.estimate = {1, 1, 1};
  }
  for (int day = 0; day < 3; ++day) {
    EXPECT_TRUE(fit.add(in_order, model::FlashWindow::day, {1.01, 1, 1.05}));
  }
  EXPECT_EQ(fit.ranges(), before);
  PolicyFit other;
  EXPECT_TRUE(other.add(in_order, model::FlashWindow::day, {1.2, 1, 1.4}));
  EXPECT_EQ(other.ranges(), PolicyFit().ranges());
  EXPECT_TRUE(fit.add(in_order, model::FlashWindow::day, {1.2, 1, 1.4})) << "a counter that is too coarse";
  for (std::size_t i = 0; i < before.size(); ++i) {
    EXPECT_NEAR(fit.ranges()[i].lower / before[i].lower, 1, 0.01) << i;
    EXPECT_NEAR(fit.ranges()[i].upper / before[i].upper, 1, 0.01) << i;
    EXPECT_EQ(fit.ranges()[i].likely, before[i].likely) << i;
  }
}

TEST(PolicyFit, ADriveThatNoPolicyExplainsStartsOver) {
  PolicyFit fit;
  EXPECT_TRUE(fit.add(made_up({1, 1, 1}), model::FlashWindow::day, around(0.1)));
  EXPECT_FALSE(fit.add(made_up({1, 1, 1}), model::FlashWindow::day, around(0.3)));
  ASSERT_TRUE(fit.overprovisioning());
  EXPECT_NEAR(fit.overprovisioning()->likely, 0.3, 0.01);
  EXPECT_GT(fit.overprovisioning()->lower, 0.2);
}

TEST(PolicyFit, FollowsADriveThatWears) {
  PolicyFit fit;
  const auto uniform = made_up({1, 1, 1});
  for (int day = 0; day < 1000; ++day) {  // 15 % to 10 %
    EXPECT_TRUE(fit.add(uniform, model::FlashWindow::day, around(0.15 * std::exp(-0.0004 * day)))) << day;
  }
  EXPECT_NEAR(fit.overprovisioning()->likely, 0.1, 0.005);
}

// --- where collection begins

/// Counters of a drive with an overhead of 3 %, which costs 1.5 after `flash` drive writes, read in steps of `step`.
/// Counters count whole units of `unit` bytes.
std::optional<double> most_spare(CollectionWatch watch, double flash, double step, double first = 0.001,
                                 double unit = 1) {
  constexpr double kBytes = 1e12;
  double media = 7e12;
  double written = 0;
  for (double next = first; next < 3; next += step) {
    const double costly = std::max(0.0, next - std::max(flash, written));
    media += ((next - written) * 1.03 + costly * 0.47) * kBytes;
    written = next;
    const auto counted = [unit](double bytes) { return std::floor(bytes / unit) * unit; };
    if (const auto found = watch.observe(written * kBytes,
                                         {counted(5.0123e12 + written * kBytes), counted(media), unit, unit}, kBytes)) {
      return found;
    }
    watch = CollectionWatch(watch.state());  // a restart
  }
  return std::nullopt;
}

TEST(CollectionWatch, FindsWhereCollectionCosts) {
  for (const double flash : {1.07, 1.185, 1.448}) {
    for (const double step : {0.0003, 0.007, 0.05}) {
      const auto found = most_spare({}, flash, step);
      ASSERT_TRUE(found) << flash << ' ' << step;
      EXPECT_GE(*found, flash - 1) << step;
      EXPECT_LE(*found, flash - 1 + 0.045 + 2 * step) << step;
    }
  }
}

/// Steps of 20 to 23 units: one unit more looks like a twentieth more written.
TEST(CollectionWatch, CoarseCountersDoNotCost) {
  for (const double unit : {1e9, 2e9, 4e9, 7e9}) {
    for (const double step : {0.0003, 0.0013, 0.007}) {
      EXPECT_FALSE(most_spare({}, 4, step, 0.001, unit)) << unit << ' ' << step;
      for (const double flash : {1.07, 1.28}) {
        const auto found = most_spare({}, flash, step, 0.001, unit);
        EXPECT_GE(found.value_or(1), flash - 1) << unit << ' ' << step;
      }
    }
  }
}

TEST(CollectionWatch, SaysNothingOfWhatItDidNotSee) {
  EXPECT_FALSE(most_spare({}, 2, 0.01)) << "nothing cost while it might have";
  EXPECT_FALSE(most_spare({}, 1.1, 0.01, 0.5)) << "it came late";
  CollectionWatch watch;
  EXPECT_FALSE(watch.observe(std::nullopt, {5e12, 7e12}, 1e12));
  watch.observe(0.0, {5e12, 7e12}, 1e12);
  watch.observe(1.0e12, {6e12, 8e12}, 1e12);
  EXPECT_FALSE(watch.observe(1.1e12, {1e12, 1e12}, 1e12)) << "counters were reset";
  EXPECT_EQ(watch.state(), CollectionWatch::State{});
}

TEST(CollectionWatch, ExcludesPoliciesThatNeedMore) {
  PolicyFit fit;
  ASSERT_TRUE(fit.add(made_up({0.5, 1, 2}), model::FlashWindow::day, around(0.2)));
  EXPECT_FALSE(fit.policy());
  EXPECT_TRUE(fit.limit(0.15));  // greedy needs 0.4, the middle policy 0.2
  EXPECT_EQ(fit.policy(), CollectionPolicy::cost_benefit);
  EXPECT_FALSE(fit.limit(0.01)) << "no policy has so little";
  EXPECT_FALSE(fit.overprovisioning());
}

// --- two real drives
// --------------------------------------------------------------------------------------------------

TEST(RealDrives, SixFillLevelsWithOneCapacity) {
  constexpr double kOverhead = 1.035;  // its sequential write amplification
  constexpr double kFlashGiB = 1079;
  // `written` is the part that is written: the rest of the drive was discarded.
  for (const auto& [written, measured] :
       {std::pair{372.6, 1.11}, {447.1, 1.165}, {521.6, 1.28}, {596.2, 1.41}, {670.7, 1.605}, {745.2, 1.893}}) {
    EXPECT_NEAR(kOverhead * uniform_limit(kFlashGiB / written) / measured, 1, 0.01) << written;
    OfflineSettings settings{std::uint64_t{1} << 30, kPageBytes, std::nullopt, true, 0, {}};
    settings.what_ifs.push_back({kFlashGiB / written - 1, CollectionPolicy::greedy_gc_frontier});
    OfflineModel model(settings);
    play(model, test::uniform_load(model.drive_pages(), 1), 6);
    const double simulated = kOverhead * model.estimates({})[0]->ratio;
    EXPECT_NEAR(simulated / measured, 1, 0.015) << written;
    std::printf("7450 MAX, %.1f GiB: simulated %.3f, measured %.3f\n", written, simulated, measured);
  }
}

TEST(RealDrives, ZipfFromFullAndFromEmpty) {
  constexpr double kOverhead = 1.06;
  const WhatIf what{0.185, CollectionPolicy::cost_benefit};
  OfflineSettings settings{std::uint64_t{1} << 31, kPageBytes, std::nullopt, true, 0, {what}};
  OfflineModel steady(settings);
  play(steady, test::zipf_load(steady.drive_pages(), 0.8, 1), 10);
  const double found = kOverhead * steady.estimates({})[0]->ratio;
  std::printf("P5520, zipf 0.8, full: simulated %.3f, measured 3.39\n", found);
  EXPECT_NEAR(found / 3.39, 1, 0.015);

  settings.starts_full = false;
  OfflineModel empty(settings);
  const auto load = test::zipf_load(empty.drive_pages(), 0.8, 1);
  const auto counts = [&] { return empty.runs()[0].drive().counts()[0]; };
  double at = 0;
  for (const auto& [drive_writes, measured] : {std::pair{1.5, 1.26},
                                               {2.0, 1.42},
                                               {3.0, 1.66},
                                               {4.0, 1.78},
                                               {5.0, 2.01},
                                               {6.0, 2.23},
                                               {7.0, 2.35},
                                               {8.0, 2.67}}) {
    play(empty, load, drive_writes - 0.5 - at);
    const auto begin = counts();
    play(empty, load, 0.5);
    at = drive_writes;
    const auto end = counts();
    const double simulated = kOverhead * (1 + static_cast<double>(end.relocated - begin.relocated) /
                                                  static_cast<double>(end.host - begin.host));
    std::printf("P5520, zipf 0.8, from empty, %.1f: simulated %.2f, measured %.2f\n", drive_writes, simulated,
                measured);
    EXPECT_NEAR(simulated / measured, 1, 0.07) << drive_writes;
  }
}

// --- the memory budget
// ---------------------------------------------------------------------------------------------

std::vector<FlashModelSettings> drives(std::size_t count) {
  std::vector<FlashModelSettings> result;
  const std::array<std::uint64_t, 4> sizes{960'197'124'096, 3'840'755'982'336, 800'166'076'416, 30'725'970'923'520};
  for (std::size_t i = 0; i < count; ++i) {
    FlashModelSettings drive{"drive" + std::to_string(i), sizes[i % sizes.size()], kPageBytes, 0, 1, {}};
    drive.what_ifs = default_what_ifs(usual_overprovisioning(drive.size_bytes).likely);
    result.push_back(drive);
  }
  return result;
}

TEST(ModelBudget, IsKeptAtAnyNumberOfDrives) {
  const std::array<ModelScale, 4> expected{ModelScale::all, ModelScale::fewer_what_ifs, ModelScale::smaller_samples,
                                           ModelScale::fewer_drives};
  std::size_t i = 0;
  for (const std::size_t count : {8U, 24U, 64U, 300U}) {
    const auto asked = drives(count);
    const ModelPlan plan = ModelBudget().plan(asked);
    std::printf("%zu drives: %s, %zu what-ifs of %llu pages, %zu modelled, %.1f MB\n", count,
                std::string(kModelScaleNames[static_cast<std::size_t>(plan.scale)]).c_str(), plan.what_ifs,
                static_cast<unsigned long long>(plan.wanted_pages), plan.drives,
                static_cast<double>(plan.bytes) / 1048576);
    EXPECT_EQ(plan.scale, expected[i++]) << count;
    EXPECT_LE(plan.bytes, ModelBudget::kDefault);
    EXPECT_EQ(plan.drives, std::min<std::size_t>(count, plan.drives));
    for (const auto& drive : asked) {
      EXPECT_TRUE(FlashModel::possible(settings_under(plan, drive)));
      EXPECT_LE(FlashModel::memory_bytes(settings_under(plan, drive)), ModelBudget::kMaxOfADrive);
    }
  }
  EXPECT_EQ(ModelBudget(0).plan(drives(1)).drives, 0U);
  EXPECT_EQ(ModelBudget(0).plan({}).scale, ModelScale::all);
}

TEST(ModelBudget, KnowsWhatAModelTakes) {
  for (const double overprovisioning : {0.07, 0.5}) {
    for (const auto placement : {Placement::none, Placement::hints}) {
      const WhatIfRun run({overprovisioning, CollectionPolicy::greedy, Discards::honoured, placement}, 98'300, 128,
                          ReplicatedDrive::Replicates::quarters, true);
      std::size_t bytes = 0;
      for (const MiniatureDrive& copy : run.drive().copies()) {
        bytes += copy.memory_bytes();
      }
      const auto shape = WhatIfRun::shape(run.what(), 98'300, 128);
      EXPECT_NEAR(static_cast<double>(bytes) /
                      static_cast<double>(ReplicatedDrive::memory_bytes(shape, ReplicatedDrive::Replicates::quarters)),
                  1, 0.02);
    }
  }
}

TEST(UsualOverprovisioning, GoesByTheNominalSize) {
  EXPECT_EQ(usual_overprovisioning(960'197'124'096).likely, 0.15);
  EXPECT_EQ(usual_overprovisioning(7'681'501'126'656).likely, 0.15);
  EXPECT_EQ(usual_overprovisioning(800'166'076'416).likely, 0.37);
  EXPECT_EQ(usual_overprovisioning(6'401'252'745'216).likely, 0.37);
  EXPECT_EQ(usual_overprovisioning(1'000'204'886'016).likely, 0.085);
  EXPECT_EQ(usual_overprovisioning(0).likely, 0.085);
}

}  // namespace
}  // namespace ssdpulse::flash
