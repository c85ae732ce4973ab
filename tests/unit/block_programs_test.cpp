// SPDX-License-Identifier: Apache-2.0
// What do the block programs conclude about requests of which they did not see everything?
#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <optional>
#include <random>

#include "tests/unit/fake_io.h"

namespace {

using namespace ssdpulse::test;

/// The first part ends, and the driver returns the request.
void end_part(fake_request& request, std::uint32_t bytes) {
  fake_now += 1000;
  fake_kernel_complete(&request, 0, bytes);
  request.bytes -= bytes;
  request.sector += bytes >> 9;
  request.started = 0;
}

const io_cell& cell(std::uint32_t operation_class) {
  return operation_class < HOT_CLASSES ? fake_hot.of[operation_class] : fake_cold_cells[operation_class - HOT_CLASSES];
}

std::uint64_t events(std::uint32_t operation_class, std::uint32_t event) {
  return fake_device_events.of[operation_class].count[event];
}

template <std::size_t kWords>
std::uint64_t samples(const __u32 (&words)[kWords]) {
  return std::accumulate(std::begin(words), std::end(words), std::uint64_t{0});
}

struct BlockPrograms : testing::Test {
  BlockPrograms() { fake_kernel_boot(); }
};

TEST_F(BlockPrograms, AnOrdinaryWrite) {
  fake_request write = io(kWrite);
  fake_now += 5000;
  issue(write);
  fake_now += 20000;
  end(write);
  const io_cell& writes = cell(CLASS_WRITE);
  EXPECT_EQ(writes.issues, 1U);
  EXPECT_EQ(writes.completions, 1U);
  EXPECT_EQ(writes.bytes, 4096U);
  EXPECT_EQ(writes.size_sum_bytes, 4096U);
  EXPECT_EQ(writes.queue_sum_ns, 6000U);
  EXPECT_EQ(writes.device_sum_ns[0], 21000U);
  EXPECT_EQ(writes.total_sum_ns, 27000U);
  EXPECT_EQ(fake_writes.class_bytes[WRITE_OTHER], 4096U);
}

TEST_F(BlockPrograms, AnIssueIsNotCountedAsMoreThanThat) {
  fake_request read = io(kRead);
  issue(read);
  EXPECT_EQ(cell(CLASS_READ).issues, 1U);
  EXPECT_EQ(samples(cell(CLASS_READ).size) + samples(cell(CLASS_READ).queue), 0U);
}

TEST_F(BlockPrograms, AReadIssueTakesTheFastPath) {
  fake_request discard = io(kDiscard), first = io(kRead), second = io(kRead);
  issue(discard);
  issue(first);
  issue(second);
  EXPECT_EQ(events(CLASS_READ, EVENT_COMPLETION_MISSED) + events(CLASS_DISCARD, EVENT_COMPLETION_MISSED), 0U);
  end(second);
  EXPECT_EQ(events(CLASS_READ, EVENT_COMPLETION_MISSED), 1U);
  EXPECT_EQ(events(CLASS_DISCARD, EVENT_COMPLETION_MISSED), 1U);
  EXPECT_EQ(fake_state->discards_started, fake_state->discards_ended) << "it disturbs nobody any more";
  EXPECT_EQ(cell(CLASS_READ).completions, 1U);
}

TEST_F(BlockPrograms, AFlushTakesTheSlowPath) {
  fake_request read = io(kRead), discard = io(kDiscard), flush = io(kFlush);
  issue(discard);
  issue(read);
  flush.structure = FAKE_TAGS + 1;  // it borrows the tag
  issue(flush);
  EXPECT_EQ(events(CLASS_READ, EVENT_COMPLETION_MISSED), 1U);
  EXPECT_EQ(events(CLASS_DISCARD, EVENT_COMPLETION_MISSED), 1U);
  EXPECT_EQ(fake_state->discards_ended, 1U);
  end(flush);
  EXPECT_EQ(cell(CLASS_FLUSH).completions, 1U);
}

TEST_F(BlockPrograms, ADiscardWhoseEndWasMissedDoesNotEndAsARead) {
  fake_request discard = io(kDiscard);
  issue(discard);
  fake_request read = io(kRead);
  read.started = read.had_before = 1;  // its issue was not seen
  end(read);
  EXPECT_EQ(events(CLASS_DISCARD, EVENT_COMPLETION_MISSED), 1U);
  EXPECT_EQ(events(CLASS_READ, EVENT_STRAY), 1U);
  EXPECT_EQ(fake_state->discards_started, fake_state->discards_ended) << "it is not in flight any more";
  EXPECT_EQ(cell(CLASS_READ).completions, 0U) << "nobody knows its time";
}

TEST_F(BlockPrograms, AReadWhoseEndWasMissedEndsNoFlush) {
  fake_request read = io(kRead), flush = io(kFlush);
  issue(read);
  flush.started = flush.had_before = 1;  // its issue was not seen
  end(flush);
  EXPECT_EQ(events(CLASS_READ, EVENT_COMPLETION_MISSED), 1U);
  EXPECT_EQ(events(CLASS_FLUSH, EVENT_STRAY), 1U);
  EXPECT_EQ(fake_state->flushes_ended, 0U) << "none had begun for us";
}

TEST_F(BlockPrograms, AFlushWhoseEndWasMissedEndsNoDiscard) {
  fake_request flush = io(kFlush), discard = io(kDiscard);
  issue(flush);
  discard.started = discard.had_before = 1;
  end(discard);
  EXPECT_EQ(events(CLASS_FLUSH, EVENT_COMPLETION_MISSED), 1U);
  EXPECT_EQ(fake_state->flushes_ended, 1U);
  EXPECT_EQ(fake_state->discards_ended, 0U);
}

TEST_F(BlockPrograms, TheTimeOfAnotherOperationIsNotTaken) {
  fake_request first = io(kRead), second = io(kWrite), third = io(kRead);
  for (fake_request* unstamped : {&first, &second, &third}) {
    unstamped->start_ns = 0;
  }
  issue(first);
  issue(second);
  third.started = third.had_before = 1;  // its issue was not seen
  end(third);
  EXPECT_EQ(events(CLASS_READ, EVENT_STRAY), 1U) << "the time in the slot is a write's";
  EXPECT_EQ(events(CLASS_READ, EVENT_COMPLETION_MISSED), 1U);
  EXPECT_EQ(events(CLASS_WRITE, EVENT_COMPLETION_MISSED), 1U);
}

TEST_F(BlockPrograms, ARequestThatEndsInParts) {
  fake_request write = io(kWrite);
  write.bytes = 65536;
  issue(write);
  end_part(write, 32768);
  fake_now += 50000;
  issue(write);
  fake_now += 9000;
  end(write);
  const io_cell& writes = cell(CLASS_WRITE);
  EXPECT_EQ(writes.issues, 1U);
  EXPECT_EQ(writes.reissues, 1U);
  EXPECT_EQ(writes.completions, 1U);
  EXPECT_EQ(writes.bytes, 65536U);
  EXPECT_EQ(writes.size_sum_bytes, 65536U) << "that of the whole, once";
  EXPECT_EQ(samples(writes.size), 1U);
  EXPECT_EQ(writes.queue_sum_ns, 1000U) << "until its first issue";
  EXPECT_EQ(writes.device_sum_ns[0], 10000U) << "since its last issue";
  EXPECT_EQ(fake_writes.class_bytes[WRITE_OTHER], 65536U);
}

TEST_F(BlockPrograms, GivenBackAgainAndAgain) {
  fake_request read = io(kRead);
  issue(read);
  for (int i = 0; i < 300; ++i) {
    issue(read);
  }
  EXPECT_EQ(cell(CLASS_READ).issues, 1U) << "in flight all the while";
  end(read);
  EXPECT_EQ(cell(CLASS_READ).reissues, 300U);
  EXPECT_EQ(cell(CLASS_READ).completions, 1U);
  EXPECT_EQ(cell(CLASS_READ).queue_sum_ns, 1000U);
  EXPECT_EQ(events(CLASS_READ, EVENT_COMPLETION_MISSED), 0U);
}

TEST_F(BlockPrograms, GivenBackAndRefused) {
  fake_request read = io(kRead);
  issue(read);
  read.started = 0;
  end(read);
  EXPECT_EQ(cell(CLASS_READ).completions, 1U);
  EXPECT_EQ(events(CLASS_READ, EVENT_UNISSUED), 0U);
}

TEST_F(BlockPrograms, AFlushParentLeavesTheSlotAlone) {
  fake_request write = io(kWrite), parent = write;
  issue(write);
  parent.bytes = 0;
  end(parent);
  EXPECT_EQ(events(CLASS_WRITE, EVENT_UNISSUED), 1U);
  end(write);
  EXPECT_EQ(cell(CLASS_WRITE).completions, 1U);
}

TEST_F(BlockPrograms, AFailover) {
  fake_request read = io(kRead);
  issue(read);
  read.bytes = 0;
  read.without_bio = 1;
  end(read);
  EXPECT_EQ(events(CLASS_READ, EVENT_FAILOVER), 1U);
  fake_request next = io(kRead);
  issue(next);
  end(next);
  EXPECT_EQ(events(CLASS_READ, EVENT_COMPLETION_MISSED), 0U) << "its slot was freed";
  EXPECT_EQ(cell(CLASS_READ).completions, 1U);
}

TEST_F(BlockPrograms, TagsThatShareASlot) {
  fake_kernel_share_slots();
  fake_request first = io(kRead, 1), second = io(kRead, 1 + FAKE_TAGS / 2);
  issue(first);
  issue(second);
  end(first);
  EXPECT_EQ(events(CLASS_READ, EVENT_STRAY), 1U);
  end(second);
  EXPECT_EQ(events(CLASS_READ, EVENT_SLOT_COLLISION), 1U);
  EXPECT_EQ(events(CLASS_READ, EVENT_COMPLETION_MISSED), 0U);
  EXPECT_EQ(cell(CLASS_READ).completions, 1U);
  EXPECT_EQ(cell(CLASS_READ).device_sum_ns[0], 2000U) << "of the second";
}

TEST_F(BlockPrograms, ARetiringDeviceOnlyEndsWhatItHas) {
  fake_request held = io(kRead, 1), fresh = io(kRead, 2);
  issue(held);
  fake_state->geometry.flags |= DEVICE_RETIRING;
  issue(fresh);
  issue(held);
  EXPECT_EQ(cell(CLASS_READ).issues, 1U);
  EXPECT_EQ(cell(CLASS_READ).reissues, 1U);
  end(held);
  EXPECT_EQ(cell(CLASS_READ).completions, 1U);
}

/// How the kernel timestamps requests.
enum class Starts {
  exact,   // when they are allocated
  cached,  // up to 30 us before that (since Linux 6.10, while a plug is held)
  none,    // not at all
};

/// The expected counts of one class.
struct Told {
  std::uint64_t issues = 0, reissues = 0, completions = 0, missed = 0, strays = 0, sizes = 0;
  std::uint64_t size_bytes = 0, queue_ns = 0, device_ns = 0;
};

/// Random I/Os with some events that no program sees, and an account of what was seen.
class Story {
 public:
  Story(Starts starts, double lost_issues, double lost_ends)
      : starts_(starts), lost_issues_(lost_issues), lost_ends_(lost_ends) {
    fake_kernel_boot();
  }

  void play(int ios) {
    for (int i = 0; i < ios; ++i) {
      one_io(allocated(rng_() % 4, rng_() % FAKE_TAGS));
    }
    // A flush checks its slot and finds what is left there.
    lost_issues_ = lost_ends_ = 0;
    for (std::uint32_t tag = 0; tag < FAKE_TAGS; ++tag) {
      one_io(allocated(kFlush, tag));
    }
  }

  [[nodiscard]] const Told& of(std::uint32_t operation_class) const { return of_[operation_class]; }

 private:
  bool happens(double share) { return std::uniform_real_distribution<>(0, 1)(rng_) < share; }

  fake_request allocated(std::uint32_t operation, std::uint32_t tag) {
    fake_now += 100 + rng_() % 20000;
    fake_request request = io(operation, tag);
    request.bytes = 4096U << rng_() % 6;
    if (starts_ == Starts::cached) {
      request.start_ns -= rng_() % 30000;
    } else if (starts_ == Starts::none) {
      request.start_ns = 0;
    }
    return request;
  }

  /// From its allocation to its end: a tag has one at a time, and it does not matter which other tags are busy.
  void one_io(fake_request request) {
    Told& told = of_[request.operation];
    std::optional<std::uint64_t> first, last;
    std::uint32_t size = 0;  // when it was first seen
    bool early = false;
    for (auto issues = 1 + (rng_() % 8 == 0 ? rng_() % 3 : 0); issues > 0; --issues) {
      fake_now += 1 + rng_() % 5000;
      if (!happens(lost_issues_)) {
        fake_kernel_issue(&request);
        early = early || first;
        size = first ? size : request.bytes;
        ++(first ? told.reissues : told.issues);
        last = fake_now;
        first = first ? first : last;
      }
      request.started = request.had_before = 1;
      if (issues > 1 && request.bytes > 4096 && rng_() % 2 == 0) {
        early = early || first;
        end_part(request, 4096);
      }
    }
    fake_now += 1 + rng_() % 50000;
    request.started = 1;
    const bool seen = !happens(lost_ends_);
    if (seen) {
      fake_kernel_complete(&request, 0, request.bytes);
    }
    told.completions += seen && first ? 1 : 0;
    told.device_ns += seen && first ? fake_now - *last : 0;
    told.missed += !seen && first ? 1 : 0;
    told.strays += seen && !first ? 1 : 0;
    if (first && (seen || early)) {
      ++told.sizes;
      told.size_bytes += size;
      told.queue_ns += request.start_ns != 0 ? *first - request.start_ns : 0;
    }
  }

  std::mt19937 rng_{20260};
  Starts starts_;
  double lost_issues_, lost_ends_;
  std::array<Told, CLASSES> of_{};
};

constexpr int kIos = 200'000;
constexpr std::array<std::uint32_t, 4> kClasses{CLASS_READ, CLASS_WRITE, CLASS_FLUSH, CLASS_DISCARD};

/// Every figure of every class follows from what was seen.
void expect_all(const Story& story) {
  for (const std::uint32_t operation_class : kClasses) {
    SCOPED_TRACE(operation_class);
    const Told& told = story.of(operation_class);
    const io_cell& have = cell(operation_class);
    EXPECT_EQ(have.issues, told.issues);
    EXPECT_EQ(have.reissues, told.reissues);
    EXPECT_EQ(have.completions, told.completions);
    EXPECT_EQ(events(operation_class, EVENT_COMPLETION_MISSED), told.missed);
    EXPECT_EQ(events(operation_class, EVENT_STRAY), told.strays);
    EXPECT_EQ(have.size_sum_bytes, told.size_bytes);
    EXPECT_EQ(samples(have.size), told.sizes);
    EXPECT_EQ(have.queue_sum_ns, told.queue_ns);
    EXPECT_EQ(std::accumulate(std::begin(have.device_sum_ns), std::end(have.device_sum_ns), std::uint64_t{0}),
              told.device_ns);
    EXPECT_EQ(events(operation_class, EVENT_CLOCK), 0U);
  }
  EXPECT_EQ(fake_state->discards_started, fake_state->discards_ended);
  EXPECT_EQ(fake_state->flushes_started, fake_state->flushes_ended);
}

TEST(BlockProgramStories, EverythingIsSeen) {
  for (const Starts starts : {Starts::exact, Starts::none}) {
    Story story(starts, 0, 0);
    story.play(kIos);
    expect_all(story);
  }
}

TEST(BlockProgramStories, SomeIssuesAndSomeEndsAreNot) {
  Story story(Starts::exact, 0.1, 0.1);
  story.play(kIos);
  expect_all(story);
}

TEST(BlockProgramStories, StartsFromBeforeAndIssuesThatAreNotSeen) {
  Story story(Starts::cached, 0.1, 0);
  story.play(kIos);
  expect_all(story);
}

TEST(BlockProgramStories, NoStartsAndIssuesThatAreNotSeen) {
  Story story(Starts::none, 0.1, 0);
  story.play(kIos);
  expect_all(story);
}

/// A missed end, then a missed issue of the same request: no start time distinguishes the two I/Os. They are taken for
/// one, and no other count is wrong because of it.
TEST(BlockProgramStories, IosThatCannotBeDistinguished) {
  for (const Starts starts : {Starts::cached, Starts::none}) {
    Story story(starts, 0.1, 0.1);
    story.play(kIos);
    for (const std::uint32_t operation_class : kClasses) {
      const Told& told = story.of(operation_class);
      const io_cell& have = cell(operation_class);
      const std::uint64_t missed = events(operation_class, EVENT_COMPLETION_MISSED);
      EXPECT_EQ(have.issues, have.completions + missed);
      EXPECT_EQ(have.completions + events(operation_class, EVENT_STRAY), told.completions + told.strays);
      EXPECT_LE(missed, told.missed);
      EXPECT_GE(missed, told.missed * 8 / 10);
    }
    EXPECT_EQ(fake_state->discards_started, fake_state->discards_ended);
  }
}

}  // namespace
