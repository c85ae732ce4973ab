// SPDX-License-Identifier: Apache-2.0
// Does the model of a live drive report what the drive does, keep its state, and stay silent when it does not know?
#include "daemon/flash/flash_model.h"

#include <gtest/gtest.h>
#include <time.h>

#include <cmath>

#include "daemon/flash/flash_input.h"
#include "tests/unit/flash_loads.h"
#include "tests/unit/flash_tier.h"

namespace ssdpulse::flash {
namespace {

using model::FlashSilence;
using model::FlashWindow;
using test::FlashDice;
using test::FlashLoad;

constexpr std::uint64_t kPageBytes = 4096;
constexpr std::uint64_t kPages = 1 << 19;
constexpr double kUniform = 4.846;  // theory, for large blocks at 0.12

FlashModelSettings settings_of(std::vector<WhatIf> what_ifs = {{0.12, model::CollectionPolicy::greedy}}) {
  return {"S4EVNX0R", kPages * kPageBytes, kPageBytes, 3, 77, std::move(what_ifs)};
}

/// Plays the kernel: samples all operations, counts all of them, and may lose events.
class Host {
 public:
  Host(FlashModel& drive, FlashLoad load) : model(&drive), load_(std::move(load)) {}

  void play(double drive_writes) {
    const auto until = written + static_cast<std::uint64_t>(drive_writes * kPages);
    while (written < until) {
      tick(std::min<std::uint64_t>(until - written, 4096));
    }
  }
  void tick(std::uint64_t pages) {
    FlashTick tick;
    for (const std::uint64_t end = written + pages; written < end;) {
      const auto operation = load_();
      const PageRange followed = model->sample().followed({operation.first, operation.count});
      if (!operation.discard) {
        written += operation.count;
        tick.written[operation.hint] += operation.count;
      }
      if (followed.count > 0 && dice_.share() < loses) {
        ++(operation.discard ? tick.lost_discards : tick.lost_writes);
      } else if (followed.count > 0) {
        events_.push_back({static_cast<std::uint32_t>(followed.first), static_cast<std::uint32_t>(followed.count), 0,
                           operation.discard ? FlashEventKind::discard : FlashEventKind::write, operation.hint});
      }
    }
    at += std::chrono::seconds(1);
    tick.at = at;
    tick.events = events_;
    model->observe(tick);
    events_.clear();
  }

  FlashModel* model;
  double loses = 0;
  std::uint64_t written = 0;
  std::chrono::nanoseconds at{0};

 private:
  FlashLoad load_;
  FlashDice dice_{8};
  std::vector<FlashEvent> events_;
};

std::optional<FlashSilence> silence(const FlashModel& model, FlashWindow window = FlashWindow::drive_write) {
  return model.report().silence[static_cast<std::size_t>(window)];
}

std::optional<Estimate> base(const FlashModel& model, FlashWindow window = FlashWindow::drive_write) {
  const auto report = model.report();
  for (const auto& found : report.amplification) {
    if (found.window == window && found.what_if == model.settings().what_ifs[0]) {
      return found.estimate;
    }
  }
  return std::nullopt;
}

TEST(FlashModel, SaysWhatTheDriveDoes) {
  FlashModel model(settings_of());
  Host host(model, test::uniform_load(kPages, 1));
  host.play(0.4);
  EXPECT_EQ(silence(model), FlashSilence::warming_up);
  host.play(1.6);
  for (const auto window : {FlashWindow::day, FlashWindow::drive_write}) {
    const auto found = base(model, window);
    ASSERT_TRUE(found);
    EXPECT_NEAR(found->ratio / kUniform, 1, window == FlashWindow::drive_write ? 0.025 : 0.12);
  }
  const auto found = base(model);
  EXPECT_LT(found->lower, kUniform);
  EXPECT_GT(found->upper, kUniform);
  EXPECT_NEAR(model.report().drive_writes, 2, 0.01);
  EXPECT_EQ(model.report().block_bytes, 64 * 8 * kPageBytes);
}

TEST(FlashModel, GoesOnBitForBitAfterARestart) {
  auto settings = settings_of(default_what_ifs(0.12));
  settings.what_ifs.push_back(
      {0.12, model::CollectionPolicy::cost_benefit, Discards::honoured, Placement::last_lifetime});
  FlashModel without(settings);
  FlashModel first(settings);
  Host host(without, test::hot_cold_load(kPages, 0.9, 0.1, true, 2));
  Host stopped(first, test::hot_cold_load(kPages, 0.9, 0.1, true, 2));
  host.play(0.7);
  stopped.play(0.7);
  const std::string state = first.save();
  EXPECT_LT(state.size(), ModelBudget::kMaxOfADrive);
  auto again = FlashModel::restore(settings, state, stopped.at);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_TRUE((*again)->save() == state);
  stopped.model = again->get();
  host.play(0.7);
  stopped.play(0.7);
  EXPECT_TRUE((*again)->save() == without.save());
  EXPECT_EQ(base(**again), base(without));
}

TEST(FlashModel, StateOfAnotherDriveOrDamagedIsRefused) {
  const auto settings = settings_of();
  FlashModel model(settings);
  Host(model, test::uniform_load(kPages, 1)).play(0.1);
  const std::string state = model.save();
  for (const auto& change : std::vector<std::function<void(FlashModelSettings&)>>{
           [](auto& other) { other.serial = "S4EVNX0S"; }, [](auto& other) { other.size_bytes += kPageBytes; },
           [](auto& other) { other.seed = 78; }, [](auto& other) { other.rate_bits = 4; },
           [](auto& other) { other.what_ifs[0].overprovisioning = 0.13; },
           [](auto& other) { other.what_ifs.push_back({0.5}); }}) {
    auto other = settings;
    change(other);
    EXPECT_FALSE(FlashModel::restore(other, state, {}));
  }
  FlashDice dice(3);
  for (int i = 0; i < 40; ++i) {
    std::string damaged = state;
    damaged[dice.below(damaged.size())] ^= static_cast<char>(1 << dice.below(8));
    EXPECT_FALSE(FlashModel::restore(settings, damaged, {}));
    EXPECT_FALSE(FlashModel::restore(settings, state.substr(0, dice.below(state.size())), {}));
  }
  EXPECT_FALSE(FlashModel::restore(settings, "", {}));
  EXPECT_TRUE(FlashModel::restore(settings, state, {}));
}

TEST(FlashModel, FewLossesWidenTheBoundsAndManySilenceIt) {
  FlashModel model(settings_of());
  Host host(model, test::uniform_load(kPages, 3));
  host.play(2);
  const auto without = base(model);
  host.loses = 0.01;
  host.play(2);
  const auto some = base(model);
  ASSERT_TRUE(without && some);
  EXPECT_NEAR(some->ratio / kUniform, 1, 0.03);
  EXPECT_NEAR(model.report().lost_writes, 0.01, 0.002);
  EXPECT_GT(some->upper - some->ratio, without->upper - without->ratio + 0.005 * kUniform);
  host.loses = 0.1;
  host.play(1.2);
  EXPECT_EQ(silence(model), FlashSilence::events_lost);
  EXPECT_FALSE(base(model));
  host.loses = 0;
  host.play(1.2);
  EXPECT_EQ(silence(model), std::nullopt);  // recovered
  EXPECT_NEAR(base(model)->ratio / kUniform, 1, 0.03);
}

/// After a daemon was delayed: no events were taken while more than the whole drive was written.
TEST(FlashModel, LossesOfATickOfMoreThanADriveWriteCount) {
  FlashModel model(settings_of());
  Host host(model, test::uniform_load(kPages, 3));
  host.play(2);
  ASSERT_EQ(silence(model), std::nullopt);
  host.loses = 0.1;
  host.tick(2 * kPages);
  EXPECT_EQ(silence(model), FlashSilence::events_lost);
  EXPECT_NEAR(model.report().lost_writes, 0.1, 0.01);
}

TEST(FlashModel, LostDiscardsAreWorse) {
  FlashModel model(settings_of());
  Host host(model, test::discard_load(kPages, 0.3, 4));
  host.loses = 0.012;
  host.play(1.5);
  EXPECT_EQ(silence(model), FlashSilence::events_lost);
  EXPECT_GT(model.report().lost_discards, EventLosses::kMaxDiscards);
  EXPECT_LT(model.report().lost_writes, EventLosses::kMaxWrites);
}

TEST(FlashModel, AGapMustWarmUpAgain) {
  FlashModel model(settings_of());
  Host host(model, test::uniform_load(kPages, 5));
  host.play(1);
  EXPECT_EQ(silence(model), std::nullopt);
  model.mark_gap(kPages * kPageBytes / 100);
  EXPECT_EQ(silence(model), std::nullopt);
  model.mark_gap(kPages * kPageBytes / 20);
  EXPECT_EQ(silence(model), FlashSilence::warming_up);
  host.play(0.3);
  EXPECT_EQ(silence(model), std::nullopt);
}

/// Nothing is reported about half of the drive: whether it holds data makes a difference that no sample can resolve.
TEST(FlashModel, UnknownPagesAreADoubt) {
  const WhatIf mapped{0.12, model::CollectionPolicy::greedy};
  WhatIf empty = mapped;
  empty.unknown = UnknownPages::empty;
  FlashModel model(settings_of({mapped, empty}));
  Host host(model, test::uniform_load(kPages / 2, 6));
  host.play(3);
  EXPECT_NEAR(model.report().unknown_pages, 0.5, 0.01);
  EXPECT_EQ(silence(model), FlashSilence::unknown_pages);
  // An fstrim settles it.
  FlashTick trim{host.at, {}, {}, 0, 0};
  const std::vector<FlashEvent> event{
      {static_cast<std::uint32_t>(model.sample().pages() / 2), 1 << 20, 0, FlashEventKind::discard, 0}};
  trim.events = event;
  model.observe(trim);
  EXPECT_LT(model.report().unknown_pages, 0.01);
  host.play(2);
  ASSERT_TRUE(base(model));
  EXPECT_NEAR(base(model)->ratio, 1.175, 0.02);  // theory for twice as much flash
}

TEST(FlashModel, TooFewWritesInAWindow) {
  FlashModel model(settings_of());
  Host host(model, test::uniform_load(kPages, 7));
  host.play(1);
  host.at += std::chrono::hours(25);
  host.tick(64);
  host.tick(64);
  EXPECT_EQ(silence(model, FlashWindow::day), FlashSilence::few_writes);
  EXPECT_EQ(silence(model, FlashWindow::week), std::nullopt);
  EXPECT_EQ(silence(model, FlashWindow::drive_write), std::nullopt);
}

TEST(FlashModel, AFullDiscardStartsTheCount) {
  FlashModel model(settings_of());
  Host host(model, test::uniform_load(kPages, 8));
  host.play(0.5);
  EXPECT_FALSE(model.report().written_since_full_discard_bytes);
  FlashTick trim{host.at, {}, {}, 0, 0};
  const std::vector<FlashEvent> half{{0, 1 << 15, 0, FlashEventKind::discard, 0}};
  trim.events = half;
  model.observe(trim);
  EXPECT_FALSE(model.report().written_since_full_discard_bytes);
  const std::vector<FlashEvent> all{{0, UINT32_MAX, 0, FlashEventKind::zeroes, 0}};
  trim.events = all;
  model.observe(trim);
  EXPECT_EQ(model.report().written_since_full_discard_bytes, 0U);
  const auto relocated = model.runs()[0].drive().counts()[0].relocated;
  host.play(1.1);
  EXPECT_NEAR(static_cast<double>(*model.report().written_since_full_discard_bytes) / (1.1 * kPages * kPageBytes), 1,
              0.1);
  EXPECT_EQ(model.runs()[0].drive().counts()[0].relocated, relocated);  // all flash was free
  host.play(0.2);
  EXPECT_GT(model.runs()[0].drive().counts()[0].relocated, relocated);
  model.start_empty();
  EXPECT_EQ(model.report().written_since_full_discard_bytes, 0U);
  EXPECT_EQ(model.report().unknown_pages, 0);
}

TEST(FlashModel, ADriveThatIgnoresDiscardsIsAskedFor) {
  WhatIf ignored{0.12, model::CollectionPolicy::greedy, Discards::ignored};
  FlashModel model(settings_of({{0.12, model::CollectionPolicy::greedy}, ignored}));
  Host host(model, test::discard_load(kPages, 0.3, 9));
  host.play(4);
  const auto report = model.report();
  double honoured_ratio = 0;
  double ignored_ratio = 0;
  for (const auto& found : report.amplification) {
    if (found.window == FlashWindow::drive_write) {
      (found.what_if.discards == Discards::ignored ? ignored_ratio : honoured_ratio) = found.estimate.ratio;
    }
  }
  EXPECT_NEAR(honoured_ratio / 1.27, 1, 0.03);
  EXPECT_NEAR(ignored_ratio / kUniform, 1, 0.04);
}

TEST(FlashModel, EventsOfAnyKindBreakNothing) {
  FlashDice dice(10);
  FlashModel model({"x", kPages * kPageBytes, kPageBytes, 4, 1, default_what_ifs(0.07)});
  std::vector<FlashEvent> events;
  for (int i = 0; i < 300; ++i) {
    events.clear();
    for (std::uint64_t count = dice.below(40); events.size() < count;) {
      events.push_back({static_cast<std::uint32_t>(dice.next() >> (32 + dice.below(20))),
                        static_cast<std::uint32_t>(dice.next() >> (40 + dice.below(24))), 0,
                        static_cast<FlashEventKind>(dice.below(5)), static_cast<std::uint8_t>(dice.next())});
    }
    FlashTick tick{std::chrono::seconds(i), events, {}, dice.below(3), dice.below(2)};
    tick.written[dice.below(model::kWriteHints)] = dice.next() >> (44 + dice.below(20));
    model.observe(tick);
    if (i % 50 == 0) {
      EXPECT_LE(model.report().lost_writes, 1);
      for (const WhatIfRun& run : model.runs()) {
        for (const MiniatureDrive& copy : run.drive().copies()) {
          ASSERT_EQ(copy.broken_invariant(), nullptr) << copy.broken_invariant();
        }
      }
    }
  }
}

TEST(FlashModel, UnnamedDrives) {
  FlashDriveFacts facts{std::uint64_t{1} << 40};
  EXPECT_EQ(silence_of(facts), std::nullopt);
  const auto with = [&](auto change) {
    auto changed = facts;
    change(changed);
    return silence_of(changed);
  };
  EXPECT_EQ(with([](auto& drive) { drive.size_bytes = 0; }), FlashSilence::no_size);
  EXPECT_EQ(with([](auto& drive) { drive.rotational = true; }), FlashSilence::rotational);
  EXPECT_EQ(with([](auto& drive) { drive.zoned = true; }), FlashSilence::zoned);
  EXPECT_EQ(with([](auto& drive) { drive.compresses = true; }), FlashSilence::compression);
  EXPECT_EQ(with([](auto& drive) { drive.partly_measured = true; }), FlashSilence::partly_measured);
  EXPECT_EQ(with([](auto& drive) { drive.written_elsewhere = 0.03; }), FlashSilence::written_elsewhere);
  EXPECT_EQ(with([](auto& drive) { drive.written_elsewhere = 0.01; }), std::nullopt);
  EXPECT_EQ(with([](auto& drive) { drive.virtual_device = true; }), FlashSilence::virtual_device);
  EXPECT_EQ(with([](auto& drive) { drive.virtual_device = drive.wanted_though_virtual = true; }), std::nullopt);
  // Hypervisors often present flash as rotational.
  EXPECT_EQ(with([](auto& drive) { drive.virtual_device = drive.rotational = true; }), FlashSilence::virtual_device);
  EXPECT_EQ(with([](auto& drive) { drive.virtual_device = drive.rotational = drive.wanted_though_virtual = true; }),
            std::nullopt);
  std::vector<std::string> words;
  for (std::size_t i = 0; i < model::kFlashSilences; ++i) {
    words.push_back(silence_text(static_cast<FlashSilence>(i)));
    EXPECT_FALSE(words.back().empty()) << i;
  }
  std::sort(words.begin(), words.end());
  EXPECT_EQ(std::unique(words.begin(), words.end()), words.end());
}

TEST(FlashModel, IsPossibleOfDrivesThatAreLargeEnough) {
  for (const std::uint64_t unit : {512ULL, 4096ULL, 65536ULL}) {
    for (const std::uint64_t bytes : {0ULL, 1ULL << 20, 32ULL << 30, 4ULL << 40, 256ULL << 40}) {
      FlashModelSettings settings{"x", bytes, unit, 0, 1, default_what_ifs(0.12)};
      settings.rate_bits = live_rate_bits(bytes / unit, PageSample::kUsualPages);
      EXPECT_EQ(FlashModel::possible(settings), bytes >= std::uint64_t{128} * FlashModel::kMinFollowed * unit) << bytes;
      if (FlashModel::possible(settings) && unit == 4096) {
        FlashModel model(settings);
        model.observe({std::chrono::seconds(1), {}, {bytes / unit}, 0, 0});
        EXPECT_EQ(model.runs()[0].drive().copies()[0].broken_invariant(), nullptr);
      }
    }
  }
}

/// What 100,000 writes of 4 KiB per second may cost: half a percent of a core. In CPU time of this thread, the best of
/// several runs; tests/bench has the cost on a quiet host.
TEST(FlashModel, CostsLittle) {
  constexpr std::uint64_t kBytes = std::uint64_t{1} << 40;
  FlashModelSettings settings{"x", kBytes, kPageBytes, 0, 1, default_what_ifs(0.085)};
  settings.rate_bits = live_rate_bits(kBytes / kPageBytes, PageSample::kUsualPages);
  FlashModel model(settings);
  EXPECT_LE(FlashModel::memory_bytes(settings_under({ModelScale::all, PageSample::kUsualPages, 9, 1, 0}, settings)),
            ModelBudget::kMaxOfADrive);
  FlashDice dice(1);
  double best = 1;
  constexpr std::uint64_t kIops = 100'000;
  for (int run = 0; run < 5; ++run) {
    std::vector<FlashEvent> events;
    for (std::uint64_t i = 0; i < kIops >> settings.rate_bits; ++i) {
      events.push_back(
          {static_cast<std::uint32_t>(dice.below(model.sample().pages())), 1, 0, FlashEventKind::write, 0});
    }
    timespec begin{};
    timespec end{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    model.observe({std::chrono::seconds(run), events, {kIops}, 0, 0});
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    best = std::min(
        best, static_cast<double>(end.tv_sec - begin.tv_sec) + static_cast<double>(end.tv_nsec - begin.tv_nsec) / 1e9);
  }
#ifndef SSDPULSE_SANITIZED
  EXPECT_LT(best, 0.005);
#endif
}

}  // namespace
}  // namespace ssdpulse::flash
