// SPDX-License-Identifier: Apache-2.0
// Do the ledger's bounds contain the truth, whatever a drive's counters do? Random drives, each polled several times: a
// quarter of a million in CI, always the same; twenty million new ones in the long tier, where SSDPULSE_TEST_SEED
// repeats a run; few under sanitizers. RapidCheck plays fewer, but can shrink what fails.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <random>
#include <thread>

#include "tests/unit/write_ledger_play.h"

namespace ssdpulse::wear {
namespace {

using simulation::Dice;

std::uint64_t environment_number(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr && *text != 0 ? std::strtoull(text, nullptr, 10) : otherwise;
}

bool long_tier() { return environment_number("SSDPULSE_TEST_LONG", 0) == 1; }

std::uint64_t sequences() {
#ifdef SSDPULSE_SANITIZED
  constexpr std::uint64_t kSequences = 10'000;
#else
  constexpr std::uint64_t kSequences = 250'000;
#endif
  return long_tier() ? 80 * kSequences : kSequences;
}

TEST(WriteLedgerProperty, BoundsContainTheTruthOfAllDrives) {
  const std::uint64_t seed = environment_number("SSDPULSE_TEST_SEED", long_tier() ? std::random_device()() : 15);
  const std::uint64_t wanted = sequences();
  std::printf("seed: %llu\n", static_cast<unsigned long long>(seed));
  std::atomic<std::uint64_t> next{0};
  std::atomic<int> failures{0};
  std::mutex mutex;
  PlayCounts all;
  const auto work = [&] {
    PlayCounts counts;
    for (std::uint64_t i = next++; i < wanted && failures < 10; i = next++) {
      Dice dice((seed << 32) + i * 0xD1B54A32D192ED03U);
      try {
        Play(dice, counts).run();
      } catch (const std::exception& what) {
        ++failures;
        const std::lock_guard lock(mutex);
        ADD_FAILURE() << "drive " << i << " of seed " << seed << ": " << what.what();
      }
    }
    const std::lock_guard lock(mutex);
    all.add(counts);
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency()); ++i) {
    threads.emplace_back(work);
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  const auto print = [](const char* what, std::uint64_t count) {
    std::printf("%s: %llu\n", what, static_cast<unsigned long long>(count));
  };
  print("drives", wanted);
  print("samples", all.samples);
  print("falls that a reading showed", all.falls);
  print("of them made up for by the next", all.made_up);
  print("epochs after them", all.epochs);
  print("absurd pages", all.absurd);
  print("of them doubted", all.absurd_doubted);
  print("unusable samples", all.unusable);
  print("restarts of the daemon", all.restarts);
  print("drives ended by what no counter can show", all.hidden);
  for (const auto& [window, count] : all.ratios) {
    print(("ratios of " + window).c_str(), count);
    EXPECT_GT(count, wanted / 4) << window;
  }
  print("ratios of lagging counters", all.lagging);
  print("of them between refreshes", all.refreshed);
  print("of them of counters that moved together by chance", all.by_chance);
  EXPECT_GT(all.refreshed, 0U);
  EXPECT_LT(all.by_chance, wanted / 1000);
  print("lifetimes after falls", all.after_falls);
  print("lifetimes after absurd pages", all.after_absurd);
  print("lifetimes beyond promise", all.unverified);
  print("idle writes", all.idle);
  print("drifts", all.drifts);
  EXPECT_EQ(all.ratios.size(), 5U);
  EXPECT_GT(all.lagging, wanted / 10);
  EXPECT_GT(all.after_falls, wanted / 100);
  EXPECT_GT(all.made_up, wanted / 200);
  EXPECT_GT(all.absurd, wanted / 100);
  EXPECT_GT(all.idle, wanted / 200);
  EXPECT_GT(all.drifts, wanted);
}

RC_GTEST_PROP(WriteLedgerProperty, ShrinksWhatFails, ()) {
  const auto script = *rc::gen::scale(10, rc::gen::arbitrary<std::vector<std::uint32_t>>());
  Dice dice(script);
  PlayCounts counts;
  Play(dice, counts).run();
}

}  // namespace
}  // namespace ssdpulse::wear
