// SPDX-License-Identifier: Apache-2.0
// Do the block programs lose or invent an I/O when they are told to do less, or more again, at any moment? The test
// plays the kernel, and knows of each request whether its issue was meant to be seen.
#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <random>

#include "daemon/block/program_control.h"
#include "tests/unit/fake_attribution.h"
#include "tests/unit/fake_io.h"

namespace {

using namespace ssdpulse::test;
using ssdpulse::model::Effort;

void switch_to(Effort effort) {
  fake_now += 1000;
  ssdpulse::block::switch_effort(effort, *fake_state, [] { return std::uint64_t{fake_now}; });
}

std::uint64_t events(std::uint32_t operation_class, std::uint32_t event) {
  return fake_device_events.of[operation_class].count[event];
}

template <std::size_t kWords>
std::uint64_t samples(const __u32 (&words)[kWords]) {
  return std::accumulate(std::begin(words), std::end(words), std::uint64_t{0});
}

std::uint64_t device_times(const io_cell& cell) {
  std::uint64_t sum = 0;
  for (const auto& words : cell.device) {
    sum += samples(words);
  }
  return sum;
}

struct BlockEffort : testing::Test {
  BlockEffort() { fake_kernel_boot(); }
  const io_cell& reads = fake_hot.of[CLASS_READ];
};

TEST_F(BlockEffort, UntimedReadsHaveATotalAlone) {
  switch_to(Effort::completions);
  fake_request read = io(kRead);
  fake_now += 5000;
  issue(read);
  end(read);
  EXPECT_EQ(reads.issues, 0U);
  EXPECT_EQ(reads.completions, 0U);
  EXPECT_EQ(reads.untimed, 1U);
  EXPECT_EQ(reads.bytes, 4096U);
  EXPECT_EQ(samples(reads.total), 1U);
  EXPECT_EQ(reads.total_sum_ns, 7000U);
  EXPECT_EQ(samples(reads.size), 1U);
  EXPECT_EQ(samples(reads.queue) + device_times(reads), 0U);
}

TEST_F(BlockEffort, AnUntimedStageOfAFlushIsStillAStage) {
  switch_to(Effort::completions);
  fake_request write = io(kWrite);
  write.flush_stage = 1;
  issue(write);
  end(write);
  EXPECT_EQ(fake_hot.of[CLASS_WRITE].untimed, 1U);
  EXPECT_EQ(events(CLASS_WRITE, EVENT_FLUSH_DATA_STAGE), 1U);
}

TEST_F(BlockEffort, InFlightWhenTimingEndsItIsTimed) {
  fake_request read = io(kRead);
  issue(read);
  switch_to(Effort::completions);
  fake_now += 8000;
  end(read);
  EXPECT_EQ(reads.completions, 1U);
  EXPECT_EQ(reads.untimed, 0U);
  EXPECT_EQ(reads.device_sum_ns[0], 10000U);
}

TEST_F(BlockEffort, InFlightWhenTimingBeginsItIsUntimed) {
  switch_to(Effort::completions);
  fake_request read = io(kRead);
  issue(read);
  switch_to(Effort::everything);
  end(read);
  EXPECT_EQ(reads.untimed, 1U);
  EXPECT_EQ(reads.completions, 0U);
  EXPECT_EQ(events(CLASS_READ, EVENT_STRAY), 0U);
}

TEST_F(BlockEffort, AStrayIsOneAgainOnceTimingHasBegun) {
  switch_to(Effort::completions);
  switch_to(Effort::everything);
  fake_request read = io(kRead);
  read.started = read.had_before = 1;  // no program saw its issue
  end(read);
  EXPECT_EQ(reads.untimed, 0U);
  EXPECT_EQ(events(CLASS_READ, EVENT_STRAY), 1U);
}

TEST_F(BlockEffort, AMissedEndIsFoundByAnUntimedOne) {
  fake_request missed = io(kRead);
  issue(missed);
  switch_to(Effort::completions);
  fake_request read = io(kRead);
  issue(read);
  end(read);
  EXPECT_EQ(events(CLASS_READ, EVENT_COMPLETION_MISSED), 1U);
  EXPECT_EQ(reads.untimed, 1U);
  EXPECT_EQ(reads.completions, 0U);
}

TEST_F(BlockEffort, FlushesAndDiscardsAreTimedAtAnyEffort) {
  switch_to(Effort::completions);
  fake_request discard = io(kDiscard), flush = io(kFlush, 2);
  issue(discard);
  issue(flush);
  end(discard);
  end(flush);
  EXPECT_EQ(fake_cold_cells[CLASS_DISCARD - HOT_CLASSES].completions, 1U);
  EXPECT_EQ(fake_cold_cells[CLASS_FLUSH - HOT_CLASSES].completions, 1U);
  EXPECT_EQ(fake_state->discards_started, 1U);
  EXPECT_EQ(fake_state->discards_ended, 1U);
}

TEST_F(BlockEffort, EssentialsAttributeNothing) {
  fake_kernel_attribute(FAKE_SETS, 1);
  fake_request read = io(kRead);
  issue(read);
  end(read);
  switch_to(Effort::essentials);
  read = io(kRead);
  issue(read);
  end(read);
  EXPECT_EQ(ssdpulse::test::attributed_to_all(ATTRIBUTED_READ).ios, 1U);
  EXPECT_EQ(reads.completions, 2U);
  switch_to(Effort::everything);
  read = io(kRead);
  issue(read);
  end(read);
  EXPECT_EQ(ssdpulse::test::attributed_to_all(ATTRIBUTED_READ).ios, 2U);
}

/// A random sequence of I/Os, with switches between any two events. `lossy`: some ends are seen by nobody.
void play(std::uint32_t seed, bool lossy) {
  SCOPED_TRACE(seed);
  fake_kernel_boot();
  std::mt19937 random(seed);
  const auto below = [&](std::uint32_t limit) { return random() % limit; };
  struct Tag {
    fake_request request;
    bool busy = false, issued = false, held = false, early = false;
    std::uint64_t last_issue = 0;
  };
  std::array<Tag, FAKE_TAGS> tags{};
  bool timed = true;
  struct Expected {
    std::uint64_t issues = 0, timed = 0, untimed = 0, sizes = 0, device_ns = 0, lost = 0;
  };
  std::array<Expected, HOT_CLASSES> expected{};
  for (int event = 0; event < 3000; ++event) {
    if (below(40) == 0) {
      const auto effort = static_cast<Effort>(below(3));
      switch_to(effort);
      timed = effort != Effort::completions;
      continue;
    }
    Tag& tag = tags[below(FAKE_TAGS)];
    const auto place = static_cast<std::uint32_t>(&tag - tags.data());
    Expected& own = expected[tag.request.operation % HOT_CLASSES];
    if (!tag.busy) {
      tag = {io(below(2) == 0 ? kRead : kWrite, place), true};
    } else if (!tag.issued) {
      issue(tag.request);
      own.issues += !tag.held && timed ? 1 : 0;
      // A request that the driver returns is counted then, as its bios may be gone when it ends.
      own.sizes += tag.held && !tag.early ? 1 : 0;
      tag.early = tag.held;
      tag.held = tag.held || timed;
      tag.last_issue = fake_now;
      tag.issued = true;
    } else if (below(8) == 0) {  // the driver returns it
      tag.request.started = 0;
      tag.issued = false;
    } else if (lossy && below(10) == 0) {
      own.lost += tag.held ? 1 : 0;
      tag.busy = false;
    } else {
      end(tag.request);
      own.timed += tag.held ? 1 : 0;
      own.untimed += tag.held ? 0 : 1;
      own.sizes += tag.early ? 0 : 1;
      own.device_ns += tag.held ? fake_now - tag.last_issue : 0;
      tag.busy = false;
    }
  }
  for (std::uint32_t operation = 0; operation < HOT_CLASSES; ++operation) {
    const io_cell& cell = fake_hot.of[operation];
    const Expected& own = expected[operation];
    EXPECT_EQ(cell.issues, own.issues);
    EXPECT_EQ(cell.completions, own.timed);
    EXPECT_EQ(device_times(cell), own.timed);
    EXPECT_EQ(cell.untimed, own.untimed);
    EXPECT_EQ(samples(cell.total), own.timed + own.untimed);
    EXPECT_EQ(samples(cell.size), own.sizes);
    EXPECT_EQ(cell.bytes, 4096 * (own.timed + own.untimed));
    EXPECT_EQ(cell.device_sum_ns[0], own.device_ns);
    EXPECT_EQ(events(operation, EVENT_STRAY), 0U);
    EXPECT_LE(events(operation, EVENT_COMPLETION_MISSED), own.lost);
  }
  // A loss that was not found yet will be found when its tag is used again, or is still there.
  std::uint64_t lost = 0, found = 0, waiting = 0;
  for (std::uint32_t operation = 0; operation < HOT_CLASSES; ++operation) {
    const io_cell& cell = fake_hot.of[operation];
    lost += expected[operation].lost;
    found += events(operation, EVENT_COMPLETION_MISSED);
    waiting += cell.issues - cell.completions - events(operation, EVENT_COMPLETION_MISSED);
  }
  std::uint64_t in_flight = 0;
  for (const Tag& tag : tags) {
    in_flight += tag.busy && tag.held ? 1 : 0;
  }
  EXPECT_EQ(waiting, in_flight + lost - found);
}

TEST_F(BlockEffort, AnySwitchesLoseAndInventNothing) {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    play(seed, false);
  }
}

TEST_F(BlockEffort, AnySwitchesBetweenLostEnds) {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    play(seed, true);
  }
}

}  // namespace
