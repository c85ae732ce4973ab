// SPDX-License-Identifier: Apache-2.0
// Is everything that a database suffers from detected, with its cause, begin and end, and its cost? Stories of a device
// whose I/Os take as long as the story says, with a known added time for each. Healthy ones must be silent.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "tests/unit/first_line.h"

namespace ssdpulse::test {
namespace {

using model::Operation;
using model::SpikeCause;

constexpr double kBegin = 120.4;
const int kSeeds = std::getenv("SSDPULSE_TEST_LONG") != nullptr && *std::getenv("SSDPULSE_TEST_LONG") != 0 ? 60 : 5;

std::function<double(double)> always(double value) {
  return [value](double) { return value; };
}

/// A device that takes `base` seconds per I/O, plus what a story adds.
struct Story : Simulation {
  explicit Story(int number, double base_seconds = 0.001)
      : Simulation(static_cast<std::uint64_t>(number)), base(base_seconds) {
    loads = {{Operation::read, always(400), nullptr}, {Operation::write, always(200), nullptr}};
    law = [this](double now, Operation operation, double) { return take(now, operation); };
  }
  /// A few clients that have one I/O in progress each, and then think.
  void clients(int readers, int writers, double think) {
    loads = {{Operation::read, nullptr, always(readers), 4096, think},
             {Operation::write, nullptr, always(writers), 4096, think}};
  }
  Service take(double now, Operation operation) {
    const double usual = around(base);
    const double more = adds ? adds(now, operation, usual) : 0;
    added[index(operation)] += more;
    return Service{0, usual + more};
  }
  /// I/Os that come in the first part of each period wait until the end of that part.
  void freeze(double from, double seconds, double period) {
    adds = [=](double now, Operation, double) {
      const double since = std::fmod(now - from, period);
      return now >= from && since < seconds ? seconds - since : 0;
    };
  }

  double base;
  std::function<double(double now, Operation operation, double usual)> adds;  // seconds
  std::array<double, model::kOperations> added{};
};

std::string text_of(const Story& story) {
  std::string text;
  for (std::size_t i = 0; i < story.spikes.size(); ++i) {
    const auto& spike = story.spikes[i];
    text += std::string(name(spike.operation)) + ' ' + std::string(name(spike.cause, model::kSpikeCauseNames)) +
            " begin " + std::to_string(story.begins[i]) + " seconds " +
            std::to_string(std::chrono::duration<double>(spike.duration).count()) + " excess " +
            std::to_string(spike.excess_seconds) + " " + model::evidence_text(spike) + '\n';
  }
  return text;
}

struct Seen {
  std::size_t spikes = 0;
  std::size_t of_cause = 0;
  std::size_t near = 0;  // begin and end are within 2 s of a given time
};
Seen seen(const Story& story, Operation operation, SpikeCause cause,
          const std::vector<std::pair<double, double>>& times = {}) {
  Seen result;
  for (std::size_t i = 0; i < story.spikes.size(); ++i) {
    const auto& spike = story.spikes[i];
    if (spike.operation != operation) {
      continue;
    }
    const double end = story.begins[i] + std::chrono::duration<double>(spike.duration).count();
    ++result.spikes;
    result.of_cause += spike.cause == cause ? 1 : 0;
    result.near += std::any_of(times.begin(), times.end(), [&](const auto& time) {
      return std::abs(story.begins[i] - time.first) <= 2 && std::abs(end - time.second) <= 2;
    });
  }
  return result;
}

double excess(const Story& story, Operation operation) {
  const auto& seconds = story.subject.figures()[operation].excess_seconds;
  return std::accumulate(seconds.begin(), seconds.end(), 0.0);
}

void expect_excess(const Story& story, Operation operation, double added) {
  EXPECT_NEAR(excess(story, operation), added, added / 10) << text_of(story);
}

TEST(Stories, CommitsBecomeSlow) {
  for (int seed = 1; seed <= kSeeds; ++seed) {
    Story story(seed);
    double added = 0;
    for (double at = 1; at < 240;) {  // each commit waits for the one before
      const bool slow = at >= kBegin && at < kBegin + 20;
      const double takes = story.around(slow ? 1.5 : 0.005);
      added += slow ? takes - 0.005 : 0;
      story.interfere(Operation::flush, at, at + takes);
      at += takes + 0.05;
    }
    story.run(240);
    const std::vector times{std::pair(kBegin, kBegin + 21.0)};
    for (const auto& [operation, cause] :
         {std::pair(Operation::commit, SpikeCause::flush), std::pair(Operation::flush, SpikeCause::flush)}) {
      const Seen found = seen(story, operation, cause, times);
      EXPECT_EQ(found.spikes, 1U) << text_of(story);
      EXPECT_EQ(found.of_cause, 1U) << text_of(story);
      EXPECT_EQ(found.near, 1U) << text_of(story);
      expect_excess(story, operation, added);
    }
    EXPECT_EQ(seen(story, Operation::read, SpikeCause::unknown).spikes, 0U);
    expect_first_line(story, kBegin + 10, SpikeCause::flush);
  }
}

TEST(Stories, FewCommitsBecomeSlow) {
  for (int seed = 1; seed <= kSeeds; ++seed) {
    Story story(seed);
    for (double at = 1; at < 240;) {
      const double takes = story.around(at >= kBegin && at < kBegin + 20 ? 1.5 : 0.005);
      story.interfere(Operation::flush, at, at + takes);
      at += takes + 0.9;
    }
    story.run(240);
    const Seen found = seen(story, Operation::commit, SpikeCause::flush, {{kBegin, kBegin + 21}});
    EXPECT_EQ(found.near, 1U) << text_of(story);
    EXPECT_EQ(found.of_cause, 1U) << text_of(story);
    expect_first_line(story, kBegin + 10, SpikeCause::flush);
  }
}

/// It is not known which commits are in flight, and no histogram goes that far.
TEST(Stories, ACommitThatStandsStillForMinutes) {
  for (int seed = 1; seed <= kSeeds; ++seed) {
    Story story(seed, 0.005);
    story.loads = {{Operation::read, nullptr, always(3), 4096, 0.05},
                   {Operation::write, nullptr, always(1), 4096, 0.1, true}};
    story.freeze(kBegin, 170, 1e9);
    story.run(kBegin + 240);
    for (const auto operation : {Operation::read, Operation::write, Operation::commit}) {
      const Seen found = seen(story, operation, SpikeCause::unknown, {{kBegin, kBegin + 170}});
      EXPECT_EQ(found.spikes, 1U) << text_of(story);
      EXPECT_EQ(found.near, 1U) << text_of(story);
    }
    expect_excess(story, Operation::commit, story.added[index(Operation::write)]);
    expect_first_line(story, kBegin + 85, SpikeCause::unknown);
  }
}

TEST(Stories, FuaWritesBecomeSlow) {
  for (int seed = 1; seed <= kSeeds; ++seed) {
    Story story(seed, 0.005);
    story.loads = {{Operation::read, always(100), nullptr},
                   {Operation::write, nullptr, always(1), 4096, 0.05, true},
                   {Operation::write, always(100), nullptr}};
    story.adds = [&](double now, Operation operation, double) {
      const bool slow = operation == Operation::write && now >= kBegin && now < kBegin + 20;
      return slow && story.uniform() < 0.1 ? 1.5 : 0;
    };
    story.run(240);
    const Seen found = seen(story, Operation::commit, SpikeCause::unknown, {{kBegin, kBegin + 21}});
    EXPECT_GE(found.of_cause, 1U) << text_of(story);
    EXPECT_EQ(found.of_cause, found.spikes) << text_of(story);
    expect_first_line(story, kBegin + 10, SpikeCause::unknown);
  }
}

void expect_freezes(Story& story) {
  std::vector<std::pair<double, double>> times;
  story.freeze(kBegin, 0.8, 40);
  for (int period = 0; period < 6; ++period) {
    times.emplace_back(kBegin + 40 * period, kBegin + 40 * period + 0.8);
  }
  story.run(kBegin + 220);
  for (const auto operation : {Operation::read, Operation::write}) {
    const Seen found = seen(story, operation, SpikeCause::unknown, times);
    EXPECT_GE(found.near, 5U) << text_of(story);
    EXPECT_EQ(found.near, found.spikes) << text_of(story);
    EXPECT_EQ(found.of_cause, found.spikes) << text_of(story);
    expect_excess(story, operation, story.added[index(operation)]);
  }
  expect_first_line(story, times[1].first, SpikeCause::unknown);
}

TEST(Stories, AFreezeNowAndThen) {
  for (int seed = 1; seed <= kSeeds; ++seed) {
    Story open(seed);
    expect_freezes(open);
    Story closed(seed, 0.005);
    closed.clients(2, 1, 0.05);
    expect_freezes(closed);
  }
  Story busy(1, 0.0002);
  busy.clients(8, 4, 0.002);
  expect_freezes(busy);
}

TEST(Stories, AHiccupTwoSecondsBeforeIsNotItsBegin) {
  constexpr double kHiccup = kBegin - 2.2;
  for (int seed = 1; seed <= 10; ++seed) {
    Story story(seed, 0.005);
    story.clients(2, 1, 0.05);
    story.adds = [](double now, Operation, double) {
      const bool slow = now >= kBegin && now < kBegin + 6;
      return slow ? 1.5 : now >= kHiccup && now < kHiccup + 0.05 ? 0.4 : 0;
    };
    story.run(kBegin + 40);
    const Seen found = seen(story, Operation::read, SpikeCause::unknown, {{kBegin, kBegin + 7.5}});
    EXPECT_EQ(found.spikes, 1U) << text_of(story);
    EXPECT_EQ(found.near, 1U) << text_of(story);
  }
}

TEST(Stories, FewReadsTakeLong) {
  for (const double base : {0.001, 0.005}) {
    for (int seed = 1; seed <= kSeeds; ++seed) {
      Story story(seed, base);
      story.adds = [&](double now, Operation operation, double) {
        const bool within = now >= kBegin && now < kBegin + 180;
        return operation == Operation::read && within && story.uniform() < 0.003 ? 0.5 : 0;
      };
      story.run(kBegin + 240);
      const Seen found = seen(story, Operation::read, SpikeCause::unknown);
      EXPECT_EQ(found.of_cause, found.spikes) << text_of(story);
      EXPECT_GT(story.subject.figures()[model::Operation::read].seconds[index(SpikeCause::unknown)], 120)
          << "not only where some happen to come together\n"
          << text_of(story);
      expect_excess(story, Operation::read, story.added[index(Operation::read)]);
      EXPECT_EQ(seen(story, Operation::write, SpikeCause::unknown).spikes, 0U) << text_of(story);
      expect_first_line(story, kBegin + 90, SpikeCause::unknown);
    }
  }
}

TEST(Stories, WhatOutliersCostIsNotWhatMoreLoadDoes) {
  for (int seed = 1; seed <= kSeeds; ++seed) {
    Story story(seed, 0.005);
    double outliers = 0;
    story.adds = [&](double now, Operation operation, double usual) {
      const bool within = now >= kBegin && now < kBegin + 180;
      const bool slow = operation == Operation::read && within && story.uniform() < 0.003;
      outliers += slow ? 0.5 : 0;
      return within ? 0.4 * usual + (slow ? 0.5 : 0) : 0;
    };
    story.run(kBegin + 240);
    expect_excess(story, Operation::read, outliers);
  }
}

TEST(Stories, AThousandthHoldsMostOfTheWaiting) {
  for (int seed = 1; seed <= kSeeds; ++seed) {
    Story story(seed, 0.0002);
    story.loads[0].rate = always(1500);
    story.adds = [&](double now, Operation operation, double) {
      const bool slow = operation == Operation::read && now >= kBegin && now < kBegin + 120;
      return slow && story.uniform() < 0.001 ? 0.3 : 0;
    };
    story.run(kBegin + 240);
    const Seen found = seen(story, Operation::read, SpikeCause::unknown);
    EXPECT_GE(found.of_cause, 1U) << text_of(story);
    EXPECT_EQ(found.of_cause, found.spikes) << text_of(story);
    expect_excess(story, Operation::read, story.added[index(Operation::read)]);
  }
}

void expect_brown_out(Story& story) {
  story.adds = [](double now, Operation, double usual) { return now >= kBegin && now < kBegin + 60 ? 2 * usual : 0; };
  story.run(kBegin + 120);
  for (const auto operation : {Operation::read, Operation::write}) {
    const Seen found = seen(story, operation, SpikeCause::unknown, {{kBegin, kBegin + 60}});
    EXPECT_EQ(found.spikes, 1U) << text_of(story);
    EXPECT_EQ(found.of_cause, 1U) << text_of(story);
    EXPECT_EQ(found.near, 1U) << text_of(story);
    expect_excess(story, operation, story.added[index(operation)]);
  }
  expect_first_line(story, kBegin + 30, SpikeCause::unknown);
}

TEST(Stories, ABrownOut) {
  for (int seed = 1; seed <= kSeeds; ++seed) {
    Story open(seed);
    expect_brown_out(open);
    Story closed(seed, 0.005);
    closed.clients(2, 1, 0.05);
    expect_brown_out(closed);
    Story mixed(seed, 0.004);
    mixed.loads.push_back({Operation::read, always(60), nullptr, 1 << 18});
    expect_brown_out(mixed);
  }
}

TEST(Stories, ABrownOutOfADeviceWithBadSeconds) {
  for (int seed = 1; seed <= kSeeds; ++seed) {
    for (const auto& [every, more] : {std::pair(7, 0.1), std::pair(20, 0.2)}) {
      Story story(seed, 0.2);
      story.clients(12, 8, 0.3);
      story.adds = [every = every, more = more](double now, Operation, double usual) {
        const bool bad = static_cast<int>(now) % every == 0;
        return (now >= kBegin && now < kBegin + 60 ? 2 * usual : 0) + (bad ? more : 0);
      };
      story.run(kBegin + 120);
      for (const auto operation : {Operation::read, Operation::write}) {
        EXPECT_EQ(seen(story, operation, SpikeCause::unknown, {{kBegin, kBegin + 60}}).near, 1U) << text_of(story);
      }
    }
  }
}

/// Host writes and media writes, as the drive counts them; both are given in bytes per second.
void account(Story& story, std::function<double(double)> host, std::function<double(double)> media) {
  story.poll_interval = 10;
  story.drive = [host, media, host_bytes = 1e12, media_bytes = 1e12, last = 0.0](double now) mutable {
    for (; last < now; last += 0.1) {
      host_bytes += 0.1 * host(last);
      media_bytes += 0.1 * media(last);
    }
    model::NvmeDrive said;
    said.write_amplification.host_written_bytes = host_bytes;
    said.write_amplification.media_written_bytes = media_bytes;
    return said;
  };
}

TEST(Stories, ACliffAtAConstantMediaRateIsCollection) {
  for (int seed = 1; seed <= kSeeds; ++seed) {
    Story story(seed);
    const auto within = [](double now) { return now >= kBegin && now < kBegin + 12; };
    story.adds = [=](double now, Operation, double) { return within(now) ? 0.1 : 0; };
    account(
        story, [=](double now) { return within(now) ? 10e6 : 100e6; }, always(120e6));
    story.run(kBegin + 120);
    const Seen found = seen(story, Operation::write, SpikeCause::gc, {{kBegin, kBegin + 12}});
    EXPECT_EQ(found.of_cause, 1U) << text_of(story);
    EXPECT_EQ(found.near, 1U) << text_of(story);
    expect_first_line(story, kBegin + 6, SpikeCause::gc);
  }
}

TEST(Stories, AFreezeBesideSteadyBackgroundIsNotCollection) {
  for (int seed = 1; seed <= kSeeds; ++seed) {
    Story story(seed, 0.005);
    story.clients(2, 1, 0.05);
    story.freeze(kBegin, 6, 1e6);
    const auto host = [](double now) { return now >= kBegin && now < kBegin + 6 ? 0 : 73e3; };
    account(story, host, [=](double now) { return host(now) + 1.7e6; });
    story.run(kBegin + 120);
    for (const auto operation : {Operation::read, Operation::write}) {
      const Seen found = seen(story, operation, SpikeCause::unknown, {{kBegin, kBegin + 6}});
      EXPECT_EQ(found.spikes, 1U) << text_of(story);
      EXPECT_EQ(found.of_cause, 1U) << text_of(story);
      EXPECT_EQ(found.near, 1U) << text_of(story);
    }
    expect_first_line(story, kBegin + 3, SpikeCause::unknown);
  }
}

/// A completion that nobody saw, on a device that is otherwise idle.
struct Missed : Story {
  explicit Missed(int number) : Story(number) {
    loads[0].rate = [](double now) { return now < 60 ? 400 : 0; };
    loads[1].rate = [](double now) { return now < 60 ? 200 : 0; };
    law = [this](double now, Operation operation, double) {
      const bool last = operation == Operation::read && now > 59.5 && !missed;
      missed = missed || last;
      return last ? Service{0, 1e9} : take(now, operation);
    };
  }
  bool missed = false;
};

TEST(Stories, AMissedCompletionIsNotAStall) {
  Missed told(1);
  told.kernel = [](double) { return model::KernelInFlight{0, 0}; };
  told.run(300);
  EXPECT_TRUE(told.spikes.empty()) << text_of(told);
  Missed untold(1);
  untold.run(300);
  EXPECT_FALSE(untold.spikes.empty()) << "nothing else is known of it";
}

TEST(Stories, AStallThatTheKernelHasInFlightIsOne) {
  Story story(1);
  story.freeze(kBegin, 200, 1e6);
  story.loads[0].rate =
      story.loads[1].rate = [](double now) { return now < kBegin + 1 || now > kBegin + 200 ? 200 : 0; };
  story.kernel = [](double) { return model::KernelInFlight{200, 200}; };
  story.run(kBegin + 100);
  EXPECT_TRUE(story.subject.figures()[0].active.has_value()) << "it is told of while it goes on";
  expect_first_line(story, kBegin + 50, SpikeCause::unknown);
  story.run(150);
  for (const auto operation : {Operation::read, Operation::write}) {
    const Seen found = seen(story, operation, SpikeCause::unknown, {{kBegin, kBegin + 200}});
    EXPECT_EQ(found.near, 1U) << text_of(story);
    EXPECT_EQ(found.spikes, 1U) << text_of(story);
  }
}

TEST(Stories, WhatGoesOnIsDescribed) {
  Story story(1);
  story.freeze(kBegin, 60, 1e6);
  story.run(kBegin + 20);
  const auto spikes = story.subject.going_on();
  ASSERT_EQ(spikes.size(), 2U);
  EXPECT_NEAR(std::chrono::duration<double>(spikes[0].duration).count(), 20, 2);
}

TEST(Stories, WhatASpikeCostSoFarIsKnownBeforeItsCauseIs) {
  Story story(1);
  story.adds = [](double now, Operation, double usual) { return now >= kBegin && now < kBegin + 60 ? 20 * usual : 0; };
  const double& added = story.added[index(Operation::read)];
  const auto pending = [&story] { return story.subject.figures()[model::Operation::read].pending_excess_seconds; };
  story.run(kBegin + 40);
  EXPECT_NEAR(pending(), added, added / 10);
  EXPECT_LT(excess(story, Operation::read), added / 100) << "nothing is counted twice";
  story.run(110);
  EXPECT_EQ(pending(), 0);
  expect_excess(story, Operation::read, added);
}

/// A database reads while a neighbour of its disk begins to fsync from 40 threads. `slow`: what a read takes beside it.
struct FsyncStorm : Story {
  FsyncStorm(int number, double before_every, double slow, const std::string& neighbour) : Story(number, 0.0034) {
    constexpr double kEnd = kBegin + 21;
    const auto storm = [](double now) { return now >= kBegin && now < kEnd; };
    for (double at = 1; at < kBegin + 100 && before_every > 0; at += before_every) {
      interfere(Operation::flush, at, at + around(0.05));
    }
    for (double at = kBegin; at < kEnd; at += 0.025) {
      interfere(Operation::flush, at, at + 0.1);
    }
    loads = {
        {Operation::read, always(200), nullptr, 8192, 0, false, "db.service"},
        {Operation::write, always(20), nullptr, 8192, 0, false, "db.service"},
        {Operation::write, [=](double now) { return storm(now) ? 400.0 : 0.0; }, nullptr, 4096, 0, false, neighbour}};
    adds = [this, slow, storm](double now, Operation, double usual) {
      const bool during_flush = beside(now, now, Operation::flush);
      return !during_flush ? 0 : storm(now) ? (slow / 0.0034 - 1) * usual : 10 * usual;
    };
  }
};

TEST(Stories, ANeighboursFsyncStormHoldsUpReads) {
  for (int seed = 1; seed <= kSeeds; ++seed) {
    for (const double before_every : {0.0, 1.0}) {
      FsyncStorm story(seed, before_every, 0.0425, "etl.service");
      story.run(kBegin + 60);
      const Seen found = seen(story, Operation::read, SpikeCause::flush, {{kBegin, kBegin + 21}});
      EXPECT_EQ(found.spikes, 1U) << text_of(story);
      EXPECT_EQ(found.of_cause, 1U) << text_of(story);
      EXPECT_EQ(found.near, 1U) << text_of(story);
    }
  }
}

/// The database commits as often as before, or less; most commits are the neighbour's.
struct CommitsBesideAStorm : Story {
  CommitsBesideAStorm(int number, double before, double within, const std::string& neighbour) : Story(number, 0.0034) {
    const auto storm = [](double now) { return now >= kBegin && now < kBegin + 21; };
    for (double at = 1; at < kBegin + 60; at += storm(at) ? 0.01 : 0.05) {
      interfere(Operation::flush, at, at + around(storm(at) ? within : before));
    }
    loads = {
        {Operation::read, always(200), nullptr, 8192, 0, false, "db.service"},
        {Operation::write, always(20), nullptr, 8192, 0, false, "db.service"},
        {Operation::write, [=](double now) { return storm(now) ? 80.0 : 0.0; }, nullptr, 4096, 0, false, neighbour}};
  }
};

TEST(Stories, ANeighboursFsyncStormHoldsUpCommits) {
  for (int seed = 1; seed <= kSeeds; ++seed) {
    CommitsBesideAStorm story(seed, 0.01, 0.035, "etl.service");
    story.run(kBegin + 60);
    const Seen found = seen(story, Operation::commit, SpikeCause::flush);
    EXPECT_EQ(found.spikes, 1U) << text_of(story);
    EXPECT_EQ(found.of_cause, 1U) << text_of(story);
  }
}

TEST(Stories, ThreeInAThousandReadsOfASlowDiskTakeLong) {
  for (int seed = 1; seed <= kSeeds; ++seed) {
    for (const double rate : {50.0, 300.0}) {
      Story story(seed, 0.02);
      story.loads[0].rate = always(rate);
      story.adds = [&](double now, Operation operation, double) {
        const bool within = now >= kBegin && now < kBegin + 60;
        return operation == Operation::read && within && story.uniform() < 0.003 ? 0.5 : 0;
      };
      story.run(kBegin + 120);
      const Seen found = seen(story, Operation::read, SpikeCause::unknown);
      // Of 3,000 reads, nine are slow on average: by chance they may be too few to be sure of after as many healthy
      // ones.
      EXPECT_TRUE(found.spikes >= 1 || story.added[index(Operation::read)] < 8 * 0.5) << text_of(story);
      EXPECT_EQ(found.of_cause, found.spikes) << text_of(story);
      EXPECT_EQ(seen(story, Operation::write, SpikeCause::unknown).spikes, 0U) << text_of(story);
    }
  }
}

TEST(Stories, TheSecondOfTwoEqualStalls) {
  for (int seed = 1; seed <= kSeeds; ++seed) {
    Story story(seed, 0.005);
    story.loads = {{Operation::read, always(60), nullptr}, {Operation::write, always(20), nullptr}};
    // Each within one second.
    story.adds = [](double now, Operation, double) {
      const double first = now - (kBegin - 0.1);
      const double since = first < 30 ? first : first - 30;
      return since >= 0 && since < 0.35 ? 0.4 - since : 0;
    };
    story.run(kBegin + 60);
    const double second = kBegin - 0.1 + 30;
    const Seen found = seen(story, Operation::read, SpikeCause::unknown, {{second, second + 0.4}});
    EXPECT_EQ(found.near, 1U) << text_of(story);
  }
}

std::optional<double> usual(const Story& story, Operation operation) {
  const auto& baseline = story.subject.figures()[operation].baseline;
  return baseline ? std::optional(baseline->p99_seconds) : std::nullopt;
}

/// A bulk load of a minute that builds up over half of it, every so often.
struct BulkLoads : Story {
  explicit BulkLoads(int number, double every) : Story(number, 0.0035) {
    const auto share = [every](double now) {
      const double since = std::fmod(now - kBegin, every);
      const double rise = now < kBegin + every ? 40 : 0.1;
      return now < kBegin || since >= 60 ? 0 : std::min(1.0, since / rise);
    };
    loads = {{Operation::read, always(200), nullptr},
             {Operation::write, [=](double now) { return 20 + 400 * share(now); }, nullptr, 1 << 16}};
    law = [this, share](double now, Operation operation, double) {
      const double took = around(base) * (1 + 7 * share(now));
      return Service{0, took + (adds ? adds(now, operation, took) : 0)};
    };
  }
};

TEST(Stories, ABulkLoadIsALoadAndNotWhatIsUsual) {
  for (int seed = 1; seed <= kSeeds; ++seed) {
    BulkLoads story(seed, 1e6);
    const double slow = kBegin + 60 + 120;
    story.adds = [slow](double now, Operation, double usual) { return now >= slow && now < slow + 20 ? 6 * usual : 0; };
    story.run(kBegin);
    const double before = usual(story, Operation::read).value();
    story.run(60);
    EXPECT_GT(usual(story, Operation::read).value(), 3 * before);
    EXPECT_TRUE(story.spikes.empty()) << text_of(story);
    story.run(118);
    EXPECT_LT(usual(story, Operation::read).value(), 1.6 * before);
    story.run(12);
    const auto going_on = story.subject.going_on();
    ASSERT_FALSE(going_on.empty());
    EXPECT_EQ(going_on[0].baseline_seconds, usual(story, Operation::read)) << "one value for all";
    story.run(60);
    EXPECT_EQ(seen(story, Operation::read, SpikeCause::unknown, {{slow, slow + 20}}).near, 1U) << text_of(story);
  }
}

void expect_silence(const Story& story) {
  EXPECT_TRUE(story.spikes.empty()) << text_of(story);
  for (const auto& figures : story.subject.figures()) {
    EXPECT_FALSE(figures.active.has_value());
  }
  expect_usual_first_line(story, 150);
}

TEST(HealthyStories, TenTimesTheLatencyIn150Seconds) {
  for (int seed = 1; seed <= kSeeds; ++seed) {
    for (const double base : {0.001, 0.005}) {
      Story story(seed, base);
      story.adds = [](double now, Operation, double usual) {
        return usual * 9 * std::clamp((now - kBegin) / 150, 0.0, 1.0);
      };
      story.run(kBegin + 240);
      expect_silence(story);
    }
  }
}

TEST(HealthyStories, LoadOnAndOff) {
  for (int seed = 1; seed <= kSeeds; ++seed) {
    for (const double period : {20.0, 60.0, 240.0}) {
      Story story(seed);
      const auto on = [=](double now) { return std::fmod(now, period) >= period / 2; };
      story.loads = {{Operation::read, [=](double now) { return on(now) ? 1000.0 : 20.0; }, nullptr},
                     {Operation::write, nullptr, [=](double now) { return on(now) ? 8.0 : 0.0; }, 65536, 0.01}};
      story.law = [&](double, Operation, double depth) {
        return Service{0, 0.002 * std::pow(story.around(1), 0.25) * (1 + depth / 5)};
      };
      story.run(600);
      expect_silence(story);
    }
  }
}

TEST(HealthyStories, BulkLoadsThatReturn) {
  for (int seed = 1; seed <= kSeeds; ++seed) {
    for (const double every : {150.0, 600.0}) {
      BulkLoads story(seed, every);
      story.run(kBegin + 1300);
      expect_silence(story);
    }
  }
}

/// Neighbours come and go and slow each other a little, on a drive with the tail of a healthy one.
TEST(HealthyStories, TenantsThatComeAndGo) {
  for (int seed = 1; seed <= 2 * kSeeds; ++seed) {
    Story story(seed);
    story.loads.clear();
    for (int tenant = 0; tenant < 4; ++tenant) {
      const double period = 20 + 200 * story.uniform();
      const double share = 0.2 + 0.8 * story.uniform();
      const double reads = 10 + 300 * story.uniform();
      const double writes = 10 + 200 * story.uniform();
      const bool always_on = tenant == 0;
      const auto on = [=](double now) { return always_on || std::fmod(now, period) < share * period; };
      const std::string name = "t" + std::to_string(tenant) + ".service";
      story.loads.push_back(
          {Operation::read, [=](double now) { return on(now) ? reads : 0.0; }, nullptr, 8192, 0, false, name});
      story.loads.push_back({Operation::write, [=](double now) { return on(now) ? writes : 0.0; }, nullptr,
                             tenant % 2 == 0 ? 4096U : 131072U, 0, false, name});
    }
    const double base = story.uniform() < 0.5 ? 0.0005 : 0.003;
    story.law = [&story, base](double, Operation, double depth) {
      const double chance = story.uniform();
      const double tail = chance < 0.0003 ? 50 : chance < 0.005 ? 5 : 1;
      return Service{0, tail * story.around(base) * (1 + std::min(depth, 24.0) / 24)};
    };
    story.run(600);
    expect_silence(story);
  }
}

TEST(HealthyStories, AStormOfOnesOwn) {
  for (int seed = 1; seed <= kSeeds; ++seed) {
    FsyncStorm reads(seed, 1, 0.0125, "db.service");
    reads.run(kBegin + 60);
    EXPECT_EQ(seen(reads, Operation::read, SpikeCause::flush).spikes, 0U) << text_of(reads);
    CommitsBesideAStorm commits(seed, 0.01, 0.035, "db.service");
    commits.run(kBegin + 60);
    expect_silence(commits);
  }
}

TEST(HealthyStories, MixedSizes) {
  for (int seed = 1; seed <= kSeeds; ++seed) {
    Story story(seed);
    const auto large = [](double now) { return std::fmod(now, 90) < 40; };
    story.loads = {{Operation::read, [=](double now) { return large(now) ? 100.0 : 400.0; }, nullptr},
                   {Operation::write, [=](double now) { return large(now) ? 60.0 : 20.0; }, nullptr, 1 << 20},
                   {Operation::write, always(100), nullptr}};
    story.law = [&](double, Operation operation, double) {
      const bool is_large = operation == Operation::write && story.uniform() < 0.3;
      return Service{0, story.around(is_large ? 0.008 : 0.002)};
    };
    story.run(600);
    expect_silence(story);
  }
}

TEST(HealthyStories, NineDrivesForTenMinutes) {
  for (int drive = 1; drive <= 9; ++drive) {
    Story story(drive, drive % 2 == 0 ? 0.005 : 0.0005);
    if (drive % 3 != 0) {
      story.clients(drive, drive / 2 + 1, 0.05);
    }
    // Occasional commits, and a device with the tail of a healthy one.
    for (double at = 1; at < 600; at += 0.5 + story.uniform()) {
      story.interfere(Operation::flush, at, at + story.around(0.004));
    }
    story.adds = [&](double, Operation, double usual) {
      const double chance = story.uniform();
      return chance < 0.0005 ? 50 * usual : chance < 0.005 ? 5 * usual : 0;
    };
    story.run(600);
    expect_silence(story);
    for (const auto operation : {Operation::read, Operation::write}) {
      EXPECT_LE(excess(story, operation), 1.05 * story.added[index(operation)]) << drive;
    }
    EXPECT_LT(excess(story, Operation::commit), 0.1) << drive;
  }
}

}  // namespace
}  // namespace ssdpulse::test
