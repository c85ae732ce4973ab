// SPDX-License-Identifier: Apache-2.0
// For how long do the block programs say that a device was at its full queue depth? Never for longer than it was, in
// whatever order two CPUs take their steps.
#include <gtest/gtest.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/fake_kernel.h"

namespace {

constexpr std::uint64_t operator""_us(unsigned long long us) { return us * 1000; }
/// The programs keep times in steps of this length.
constexpr std::uint64_t kStep = QUEUE_FULL_CPUS_MASK + 1;
constexpr std::uint64_t kBegin = kStep * 1'000'000;

/// The end of a request.
struct End {
  bool waits;  // another one, for a tag
  std::uint64_t at_ns;
};

std::uint64_t play(const std::vector<End>& ends) {
  return std::accumulate(ends.begin(), ends.end(), std::uint64_t{0}, [](std::uint64_t sum, const End& end) {
    return sum + fake_kernel_queue_full(end.waits, kBegin + end.at_ns);
  });
}

struct QueueFull : testing::Test {
  QueueFull() { fake_kernel_boot(); }
};

TEST_F(QueueFull, GrowsWithTheClockWhileRequestsWait) {
  std::uint64_t ns = 0;
  for (std::uint64_t at = 0; at <= 100'000_us; at += 20_us) {
    ns += play({{true, at}});
  }
  EXPECT_LE(ns, 100'000_us);
  EXPECT_GE(ns, 100'000_us - QUEUE_FULL_UPDATE_NS - 20_us - kStep);
}

TEST_F(QueueFull, APauseEndsItOnlyIfNobodyWaitsSoonAfter) {
  EXPECT_NEAR(static_cast<double>(play({{true, 0}, {false, 500_us}, {true, 510_us}, {true, 1000_us}})), 1000_us, kStep);
  EXPECT_NEAR(static_cast<double>(play({{false, 1200_us}, {false, 1300_us}, {false, 1400_us}})), 200_us, kStep);
  EXPECT_EQ(fake_state->full_since, 0U);
  EXPECT_EQ(play({{false, 2000_us}, {true, 3000_us}}), 0U);
}

TEST_F(QueueFull, ASilenceAfterAPauseIsNotCounted) {
  EXPECT_NEAR(static_cast<double>(play({{true, 0}, {false, 500_us}, {true, 20'000_us}, {true, 20'100_us}})), 600_us,
              2 * kStep);
  EXPECT_NEAR(static_cast<double>(play({{true, 60'000_us}})), 39'900_us, kStep) << "nobody said that it was over";
}

/// Two CPUs at once, each with an end. One of them runs at a time, up to the next word that they share.
class Race {
 public:
  /// Which CPU runs next, wherever there is a choice.
  using Order = std::vector<bool>;

  /// What both add. Appends to `order` what it does not decide.
  static std::uint64_t run(const std::array<End, 2>& ends, Order& order) {
    Race race(ends, order);
    return race.run();
  }

  /// The next order in which something differs; false after the last one.
  static bool next(Order& order) {
    while (!order.empty() && order.back()) {
      order.pop_back();
    }
    if (order.empty()) {
      return false;
    }
    order.back() = true;
    return true;
  }

 private:
  struct Cpu {
    End end;
    ucontext_t at;
    std::array<char, 256 << 10> stack;
    bool done;
    std::uint64_t added;
  };

  Race(const std::array<End, 2>& ends, Order& order) : order_(order) {
    for (std::size_t i = 0; i < cpus_.size(); ++i) {
      Cpu& cpu = cpus_.at(i);
      cpu.end = ends.at(i);
      cpu.done = false;
      getcontext(&cpu.at);
      cpu.at.uc_stack.ss_sp = cpu.stack.data();
      cpu.at.uc_stack.ss_size = cpu.stack.size();
      cpu.at.uc_link = &scheduler_;
      makecontext(&cpu.at, end_request, 0);
    }
  }

  std::uint64_t run() {
    fake_on_shared_word = interrupt;
    for (std::size_t choices = 0; !cpus_[0].done || !cpus_[1].done;) {
      bool second = cpus_[0].done;
      if (!cpus_[0].done && !cpus_[1].done) {
        if (choices == order_.size()) {
          order_.push_back(false);
        }
        second = order_[choices++];
      }
      running_ = &cpus_.at(second ? 1 : 0);
      swapcontext(&scheduler_, &running_->at);
    }
    fake_on_shared_word = nullptr;
    return cpus_[0].added + cpus_[1].added;
  }

  static void end_request() {
    running_->added = play({running_->end});
    running_->done = true;
  }
  static void interrupt() { swapcontext(&running_->at, &scheduler_); }

  Order& order_;
  static inline std::array<Cpu, 2> cpus_;
  static inline Cpu* running_;
  static inline ucontext_t scheduler_;
};

struct RaceCase {
  const char* what;
  std::vector<End> before;
  std::uint64_t at_ns;
};

TEST_F(QueueFull, NoTimeCountsTwiceWhenTwoCpusEndRequestsAtOnce) {
  const std::vector<RaceCase> cases{
      {"begins", {}, 0},
      {"has begun", {{true, 0}}, 10_us},
      {"is kept", {{true, 0}}, 1000_us},
      {"has paused", {{true, 0}, {false, 1000_us}}, 1010_us},
      {"is over", {{true, 0}, {false, 1000_us}}, 1200_us},
      {"after a silence", {{true, 0}, {false, 1000_us}}, 20'000_us},
      {"begins again", {{true, 0}, {false, 1000_us}, {false, 1100_us}}, 1200_us},
      {"begins again, late", {{true, 0}, {false, 1000_us}, {false, 1100_us}}, 900_us},
  };
  for (const auto& [what, before, at_ns] : cases) {
    for (const auto& [first, second] : {std::pair{false, false}, {false, true}, {true, false}, {true, true}}) {
      for (const std::uint64_t later : {0_us, 8_us, 150_us}) {
        SCOPED_TRACE(std::string(what) + (first ? ", waits" : ", none") + (second ? ", waits" : ", none") +
                     " after ns: " + std::to_string(later));
        Race::Order order;
        bool right = true;
        do {
          fake_state->full_since = fake_state->full_paused_ns = 0;
          std::uint64_t ns = play(before);
          ns += Race::run({{{first, at_ns}, {second, at_ns + later}}}, order);
          EXPECT_EQ(fake_state->full_since & QUEUE_FULL_CPUS_MASK, 0U);
          const std::uint64_t last = std::max(at_ns, 1100_us) + 400_us;
          ns += play({{true, last - 200_us}, {true, last - 100_us}, {false, last}, {false, last + 100_us}});
          EXPECT_EQ(fake_state->full_since, 0U);
          EXPECT_GE(ns, 100_us - kStep);
          right = ns <= last + kStep;
          EXPECT_TRUE(right) << ns << " ns of " << last;
        } while (right && Race::next(order));
      }
    }
  }
}

}  // namespace
