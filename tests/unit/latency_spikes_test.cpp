// SPDX-License-Identifier: Apache-2.0
// Are spikes found, with the right cause, when there are any, and only then? Scenarios of loads and devices, each with
// a time when something begins to go wrong, or none.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>

#include "tests/unit/first_line.h"

namespace ssdpulse::test {
namespace {

using model::Operation;
using model::SpikeCause;

constexpr double kBegin = 45.3;
constexpr double kEnd = 53.3;
constexpr double kBase = 0.001;

std::uint64_t seed() {
  const char* text = std::getenv("SSDPULSE_TEST_SEED");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : 1;
}

bool within(double now) { return now >= kBegin && now < kEnd; }
std::function<double(double)> always(double value) {
  return [value](double) { return value; };
}

/// Reads and writes at a steady rate, on a healthy device.
struct Steady : Simulation {
  explicit Steady(std::uint64_t number) : Simulation(seed() * 1000 + number) {
    loads = {{Operation::read, always(400), nullptr}, {Operation::write, always(200), nullptr}};
    law = [this](double, Operation, double) { return Service{0, around(kBase)}; };
  }
  /// I/Os that come after kBegin end only at kEnd.
  void stall() {
    law = [this](double now, Operation, double) {
      return Service{0, within(now) ? kEnd - now + around(kBase) : around(kBase)};
    };
  }
  /// Host writes of 1 MB/s; the media receive the same, and more during `gc`.
  void account(bool gc, bool heat = false) {
    drive = [=](double now) {
      model::NvmeDrive said;
      auto& writes = said.write_amplification;
      writes.host_written_bytes = 1e9 + now * 1e6;
      writes.media_written_bytes = 1e9 + now * 1.1e6 + (gc ? 4e6 * (std::clamp(now, kBegin, kEnd) - kBegin) : 0);
      said.values.push_back(
          {model::NvmeField::critical_warning, "temperature", heat && now >= kBegin && now < kEnd + 60 ? 1.0 : 0.0, 0});
      return said;
    };
  }
};

std::string text_of(const model::LatencySpike& spike) {
  std::string text = std::string(name(spike.operation)) + " " +
                     std::string(name(spike.cause, model::kSpikeCauseNames)) + " peak " +
                     std::to_string(spike.peak_seconds) + " ios " + std::to_string(spike.ios);
  for (const auto& [what, value] : spike.evidence) {
    text += " " + std::string(evidence_row(what).name) + "=" + std::to_string(value);
  }
  for (const std::string& missing : spike.missing) {
    text += " missing: " + missing;
  }
  return text;
}

/// Expects it for reads and for writes.
void expect_cause(const Simulation& simulation, SpikeCause cause, double begin = kBegin, double end = kEnd) {
  EXPECT_FALSE(simulation.spikes.empty()) << "no spike";
  for (std::size_t i = 0; i < simulation.spikes.size(); ++i) {
    const auto& spike = simulation.spikes[i];
    if (spike.operation > model::Operation::write) {
      continue;
    }
    EXPECT_EQ(name(spike.cause, model::kSpikeCauseNames), name(cause, model::kSpikeCauseNames)) << text_of(spike);
    EXPECT_NEAR(simulation.begins[i], begin, 2) << text_of(spike);
    EXPECT_NEAR(simulation.begins[i] + std::chrono::duration<double>(spike.duration).count(), end, 2) << text_of(spike);
    EXPECT_GT(spike.ios, 0U);
    EXPECT_GT(spike.peak_seconds, 4 * spike.baseline_seconds);
  }
  expect_first_line(simulation, (begin + end) / 2, cause);
}

void expect_silence(const Simulation& simulation) {
  for (std::size_t i = 0; i < simulation.spikes.size(); ++i) {
    ADD_FAILURE() << "a spike at " << simulation.begins[i] << ": " << text_of(simulation.spikes[i]);
  }
  expect_usual_first_line(simulation, 60);
}

TEST(LatencySpikes, DiscardsThatStallReads) {
  Steady sim(1);
  for (double at = kBegin; at < kEnd; at += 0.5) {
    sim.interfere(Operation::discard, at, at + 0.45);
  }
  sim.law = [&](double now, Operation operation, double) {
    const bool hit = operation == Operation::read && sim.beside(now, now, Operation::discard);
    return Service{0, hit ? 0.45 - std::fmod(now - kBegin, 0.5) + sim.around(kBase) : sim.around(kBase)};
  };
  sim.run(100);
  expect_cause(sim, SpikeCause::discard);
  EXPECT_EQ(sim.spikes.size(), 1U);
  EXPECT_EQ(sim.spikes[0].operation, model::Operation::read);
}

TEST(LatencySpikes, OneLongDiscardThatStallsAll) {
  Steady sim(2);
  sim.interfere(Operation::discard, kBegin, kEnd);
  sim.stall();
  sim.account(false);
  sim.run(130);
  expect_cause(sim, SpikeCause::discard);
}

TEST(LatencySpikes, FlushStorm) {
  Steady sim(3);
  for (double at = 5; at < 100; at += 2) {
    sim.interfere(Operation::flush, at, at + 0.002);  // as usual
  }
  for (double at = kBegin; at < kEnd; at += 0.11) {
    sim.interfere(Operation::flush, at, at + 0.1);
  }
  sim.law = [&](double now, Operation, double) {
    const bool hit = within(now) && sim.beside(now, now, Operation::flush);
    return Service{0, sim.around(hit ? 0.05 : kBase)};
  };
  sim.run(100);
  expect_cause(sim, SpikeCause::flush);
}

/// A log that is flushed after every few writes, which takes 5 ms normally and `sick` seconds between kBegin and kEnd.
struct Log : Steady {
  Log(std::uint64_t number, double sick) : Steady(number) {
    for (double at = 1; at < 130;) {
      const double takes = at >= kBegin && at < kEnd ? sick : 0.005;
      interfere(Operation::flush, at, at + takes);
      flushes.emplace_back(at, at + takes);
      at += takes + 0.02;
    }
    const auto between = [this](double now) { return wait(now) > 0 ? 0.0 : 300.0; };
    loads = {{Operation::read, always(60), nullptr}, {Operation::write, between, nullptr}};
  }
  /// When the flush in progress ends.
  double wait(double now) const {
    const auto next = std::upper_bound(flushes.begin(), flushes.end(), std::pair(now, 1e9));
    return next != flushes.begin() ? std::max(0.0, std::prev(next)->second - now) : 0;
  }
  void hold_up_reads() {
    law = [this](double now, Operation operation, double) {
      return Service{0, (operation == Operation::read ? wait(now) : 0) + around(kBase)};
    };
  }
  std::vector<std::pair<double, double>> flushes;
};

TEST(LatencySpikes, WhatIsSlowBesideASpikeDoesNotBecomeUsual) {
  // Writes take somewhat longer while commits are far slower: too little for a spike of their own.
  Steady sim(33);
  constexpr double kFirst = 60, kLast = 160;
  const auto slow = [](double now) { return now >= kFirst && now < kLast; };
  for (double at = 1; at < 170; at += 0.5) {
    sim.interfere(Operation::flush, at, at + (slow(at) ? 0.4 : 0.005));
  }
  sim.law = [&](double now, Operation operation, double) {
    return Service{0, sim.around(slow(now) && operation == Operation::write ? 1.7 * kBase : kBase)};
  };
  sim.run(200);
  const auto usual = [&](std::size_t tick) {
    return sim.figures.at(tick)[model::Operation::write].baseline.value().p99_seconds;
  };
  EXPECT_LT(usual(155), 1.3 * usual(58));
}

TEST(LatencySpikes, FlushesOfALogThatBecomeSlowAreFewer) {
  Log sim(31, 0.7);
  sim.hold_up_reads();
  sim.account(false);
  sim.run(130);
  expect_cause(sim, SpikeCause::flush);
}

TEST(LatencySpikes, FlushesOfALogThatBecomeSlowByGarbageCollection) {
  // The drive's own report is stronger evidence than the contrast, and is waited for.
  Log sim(34, 0.7);
  sim.hold_up_reads();
  sim.account(true);
  sim.run(130);
  expect_cause(sim, SpikeCause::gc);
}

TEST(LatencySpikes, AStallDuringManyFlushesIsNotCausedByThem) {
  Log sim(35, 0.005);
  for (double at = 1; at < 130; at += 0.01) {
    sim.interfere(Operation::flush, at, at + 0.0195);  // two at a time, whatever happens
  }
  sim.law = [&](double now, Operation, double) {
    return Service{0, sim.around(within(now) && sim.uniform() < 0.5 ? 0.7 : kBase)};
  };
  sim.account(false);
  sim.run(130);
  expect_cause(sim, SpikeCause::unknown, kBegin, kEnd + 0.7);
}

TEST(LatencySpikes, AStallDuringTheUsualFlushesIsNotCausedByThem) {
  // Every other read and write is slow, whatever else is in flight; a slow one overlaps many flushes.
  Log sim(32, 0.005);
  sim.law = [&](double now, Operation, double) {
    return Service{0, sim.around(within(now) && sim.uniform() < 0.5 ? 0.7 : kBase)};
  };
  sim.account(false);
  sim.run(130);
  expect_cause(sim, SpikeCause::unknown, kBegin, kEnd + 0.7);
}

TEST(LatencySpikes, FlushesThatAreAsSlowAsAllElseAreNotTheCause) {
  Log sim(33, 0.7);
  sim.law = [&](double now, Operation, double) { return Service{0, sim.around(within(now) ? 0.7 : kBase)}; };
  sim.account(false);
  sim.run(130);
  expect_cause(sim, SpikeCause::unknown, kBegin, kEnd + 0.7);
}

TEST(LatencySpikes, QueueFarAboveTheDevicesRate) {
  Steady sim(4);
  sim.law = [&](double now, Operation, double) {
    return Service{within(now) ? sim.around(0.08) : 1e-5, sim.around(kBase)};
  };
  sim.account(false);
  sim.run(130);
  expect_cause(sim, SpikeCause::queue);
}

TEST(LatencySpikes, SaturationByMoreLoad) {
  Steady sim(5);
  sim.loads.push_back({Operation::write, nullptr, [](double now) { return within(now) ? 128.0 : 0.0; }, 131072, 0});
  // A device that does 2,000 I/Os per second, one after another.
  double free_at = 0;
  sim.law = [&, free_at](double now, Operation, double) mutable {
    free_at = std::max(free_at, now) + 0.0005;
    return Service{0, free_at - now + sim.around(kBase / 2)};
  };
  sim.account(false);
  sim.run(130);
  expect_cause(sim, SpikeCause::saturation);
}

TEST(LatencySpikes, GarbageCollectionThatTheDriveShows) {
  Steady sim(6);
  sim.stall();
  sim.account(true);
  sim.run(130);
  expect_cause(sim, SpikeCause::gc);
}

TEST(LatencySpikes, TheSameStallWithoutItsWord) {
  Steady sim(7);
  sim.stall();
  sim.account(false);
  sim.run(130);
  expect_cause(sim, SpikeCause::unknown);
  EXPECT_FALSE(sim.spikes.at(0).missing.empty());
}

TEST(LatencySpikes, AStallOfADriveThatCannotTell) {
  Steady sim(8);
  sim.stall();
  sim.run(100);
  expect_cause(sim, SpikeCause::unknown);
  EXPECT_FALSE(sim.spikes.at(0).missing.empty());
}

TEST(LatencySpikes, SlowerThroughoutWithTheDrivesWord) {
  for (const bool gc : {true, false}) {
    Steady sim(9);
    sim.law = [&](double now, Operation, double) { return Service{0, sim.around(within(now) ? 0.03 : kBase)}; };
    sim.account(gc);
    sim.run(130);
    expect_cause(sim, gc ? SpikeCause::gc : SpikeCause::unknown);
  }
}

TEST(LatencySpikes, Heat) {
  Steady sim(10);
  sim.loads = {{Operation::read, nullptr, always(4), 4096}};
  sim.law = [&](double now, Operation, double) { return Service{0, sim.around(within(now) ? 0.03 : kBase)}; };
  sim.account(false, true);
  sim.run(130);
  expect_cause(sim, SpikeCause::thermal);
}

TEST(LatencySpikes, MediumErrors) {
  Steady sim(11);
  sim.law = [&](double now, Operation operation, double) {
    const bool bad = within(now) && operation == Operation::read && sim.uniform() < 0.1;
    return Service{0, sim.around(bad ? 0.2 : kBase), bad};
  };
  sim.account(false);
  sim.run(130);
  expect_cause(sim, SpikeCause::error);
}

TEST(LatencySpikes, TwoCausesTheGreaterWins) {
  // Discards stall most of the time; in addition, a handful of reads fail.
  Steady sim(12);
  for (double at = kBegin; at < kEnd; at += 0.5) {
    sim.interfere(Operation::discard, at, at + 0.45);
  }
  int failures = 0;
  sim.law = [&](double now, Operation operation, double) {
    const bool hit = operation == Operation::read && sim.beside(now, now, Operation::discard);
    const bool bad = within(now) && operation == Operation::read && failures < 5 && sim.uniform() < 0.01;
    failures += bad ? 1 : 0;
    return Service{0, hit ? 0.45 - std::fmod(now - kBegin, 0.5) + sim.around(kBase) : sim.around(kBase), bad};
  };
  sim.run(100);
  expect_cause(sim, SpikeCause::discard);
  EXPECT_EQ(sim.spikes.at(0).evidence.count(model::EvidenceKey::errors), 1U);
}

TEST(LatencySpikes, AStallWhileDiscardsGoOnAsEver) {
  Steady sim(13);
  for (double at = 3; at < 100; at += 1) {
    sim.interfere(Operation::discard, at, at > kBegin - 1 && at < kEnd ? kEnd : at + 0.003);
  }
  sim.stall();
  sim.account(true);
  sim.run(130);
  expect_cause(sim, SpikeCause::gc);
}

TEST(LatencySpikes, SlowBesideDiscardsAndBesideNothingAlike) {
  Steady sim(15);
  for (double at = kBegin; at < kEnd; at += 0.5) {
    sim.interfere(Operation::discard, at, at + 0.1);
  }
  sim.law = [&](double now, Operation, double) { return Service{0, sim.around(within(now) ? 0.03 : kBase)}; };
  sim.account(false);
  sim.run(130);
  expect_cause(sim, SpikeCause::unknown);
}

TEST(LatencySpikes, OneReaderAtATime) {
  Steady sim(14);
  sim.loads = {{Operation::read, nullptr, always(1), 4096}};
  sim.stall();
  sim.account(true);
  sim.run(130);
  expect_cause(sim, SpikeCause::gc);
}

TEST(LatencySpikes, OneIoInFlightOfALoadThatIsLimited) {
  // A client with a fixed rate has little in flight, and sends no more while it does not end.
  Steady sim(16);
  bool held_up = false;
  const auto rate = [&held_up](double often) {
    return [&held_up, often](double now) { return within(now) && held_up ? 0.0 : often; };
  };
  sim.loads = {{Operation::read, rate(20), nullptr}, {Operation::write, rate(10), nullptr}};
  sim.law = [&](double now, Operation, double) {
    held_up = held_up || within(now);
    return Service{0, within(now) ? kEnd - now + sim.around(kBase) : sim.around(0.01)};
  };
  sim.account(true);
  sim.run(130);
  expect_cause(sim, SpikeCause::gc);
}

TEST(LatencySpikes, AFewClientsThatWaitForEachAnswer) {
  // The load falls to less than one I/O per second while the drive is slow.
  Steady sim(17);
  sim.loads = {{Operation::read, nullptr, always(2), 4096}, {Operation::write, nullptr, always(1), 4096}};
  constexpr double kSlow = 1.4;
  sim.law = [&](double now, Operation, double) { return Service{0.02, sim.around(within(now) ? kSlow : 0.01)}; };
  sim.account(true);
  sim.run(130);
  expect_cause(sim, SpikeCause::gc, kBegin, kEnd + kSlow);  // the last slow ones begin just before kEnd
  EXPECT_EQ(sim.spikes.size(), 2U);
}

TEST(LatencySpikes, QuietIsSilent) {
  Steady sim(20);
  sim.loads = {{Operation::read, always(0.3), nullptr}, {Operation::write, always(2), nullptr}};
  sim.run(600);
  expect_silence(sim);
}

TEST(LatencySpikes, SteadyIsSilent) {
  Steady sim(21);
  sim.run(600);
  expect_silence(sim);
}

TEST(LatencySpikes, BurstsOfAHealthyDeviceAreSilent) {
  Steady sim(22);
  sim.loads = {{Operation::read, [](double now) { return std::fmod(now, 20) < 3 ? 3000.0 : 20.0; }, nullptr},
               {Operation::write, nullptr, [](double now) { return std::fmod(now, 30) < 4 ? 32.0 : 0.0; }, 65536}};
  sim.law = [&](double, Operation, double depth) { return Service{0, sim.around(kBase) * (1 + depth / 24)}; };
  sim.run(300);
  expect_silence(sim);
}

TEST(LatencySpikes, ASlowRampIsSilent) {
  Steady sim(23);
  sim.law = [&](double now, Operation, double) {
    return Service{0, sim.around(kBase * std::exp2(std::clamp((now - 30) / 25, 0.0, 6.0)))};
  };
  sim.run(240);
  expect_silence(sim);
}

TEST(LatencySpikes, BelowTheFloorIsSilent) {
  Steady sim(24);
  sim.law = [&](double now, Operation, double) { return Service{0, sim.around(within(now) ? 1e-3 : 5e-5)}; };
  sim.floor = 0.005;
  sim.run(100);
  expect_silence(sim);
}

TEST(LatencySpikes, HiccupsAreSilent) {
  // An I/O takes long now and then: the tail of a healthy drive. Once in 50 minutes, chance may make 1 % of a minute.
  std::size_t spikes = 0;
  for (std::uint64_t run = 0; run < 10; ++run) {
    Steady sim(25 + 1000 * run);
    sim.law = [&](double, Operation, double) { return Service{0, sim.uniform() < 0.0005 ? 0.1 : sim.around(kBase)}; };
    sim.run(300);
    spikes += sim.spikes.size();
  }
  EXPECT_LE(spikes, 1U);
}

TEST(LatencySpikes, AFewErrorsWithinAStallDoNotSettleIt) {
  // The errors would be the cause if there were nothing better: but the drive is asked, and reports garbage collection.
  Steady sim(27);
  int failures = 0;
  sim.law = [&](double now, Operation operation, double) {
    const bool bad = within(now) && operation == Operation::read && failures < 3;
    failures += bad ? 1 : 0;
    return Service{0, within(now) ? kEnd - now + sim.around(kBase) : sim.around(kBase), bad};
  };
  sim.account(true);
  sim.poll_interval = 3600;
  sim.run(130);
  expect_cause(sim, SpikeCause::gc);
}

TEST(LatencySpikes, LogsAreAskedForSoonAndSparingly) {
  Steady sim(26);
  sim.stall();
  sim.account(true);
  sim.poll_interval = 3600;
  sim.run(130);
  expect_cause(sim, SpikeCause::gc);
  EXPECT_LE(sim.polls.size(), 3U) << "the first, one within the spike, one after it";
  ASSERT_GE(sim.polls.size(), 2U);
  EXPECT_LT(sim.polls.back(), kEnd + 15);
  EXPECT_FALSE(sim.active_seen.empty());
}

}  // namespace
}  // namespace ssdpulse::test
