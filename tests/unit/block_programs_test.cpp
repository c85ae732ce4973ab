// SPDX-License-Identifier: Apache-2.0
// What do the block programs make of requests of which they did not see everything?
#include <gtest/gtest.h>

#include "tests/unit/fake_kernel.h"

namespace {

constexpr std::uint32_t kRead = 0, kWrite = 1, kFlush = 2, kDiscard = 3;  // the kernel's op codes

/// One structure of the kernel, again and again.
class BlockPrograms : public testing::Test {
 protected:
  BlockPrograms() { fake_kernel_boot(); }

  /// The next I/O of the structure: allocated now.
  static fake_request io(std::uint32_t operation, std::uint32_t structure = 1) {
    fake_now += 1000;
    return {.structure = structure,
            .tag = structure,
            .operation = operation,
            .bytes = 4096,
            .sector = fake_now,
            .start_ns = fake_now,
            .started = 1,
            .without_bio = 0};
  }
  static void issue(const fake_request& request) {
    fake_now += 1000;
    fake_kernel_issue(&request);
  }
  static void end(const fake_request& request) {
    fake_now += 1000;
    fake_kernel_complete(&request, 0, request.bytes);
  }
  static std::uint64_t events(std::uint32_t operation_class, std::uint32_t event) {
    return fake_state.events[operation_class].count[event];
  }
};

TEST_F(BlockPrograms, ADiscardWhoseEndWasMissedDoesNotEndAsARead) {
  issue(io(kDiscard));
  end(io(kRead));
  EXPECT_EQ(events(CLASS_DISCARD, EVENT_COMPLETION_MISSED), 1U);
  EXPECT_EQ(events(CLASS_READ, EVENT_STRAY), 1U);
  EXPECT_EQ(fake_state.discards_started, fake_state.discards_ended) << "it is not in flight any more";
  EXPECT_EQ(fake_hot_cells[CLASS_READ].completions, 0U) << "nobody knows its time";
}

TEST_F(BlockPrograms, AReadWhoseEndWasMissedEndsNoFlush) {
  issue(io(kRead));
  end(io(kFlush));
  EXPECT_EQ(events(CLASS_READ, EVENT_COMPLETION_MISSED), 1U);
  EXPECT_EQ(events(CLASS_FLUSH, EVENT_STRAY), 1U);
  EXPECT_EQ(fake_state.flushes_ended, 0U) << "none had begun for us";
  EXPECT_EQ(fake_state.flush_last_end_ns, 0U);
}

TEST_F(BlockPrograms, AFlushWhoseEndWasMissedEndsNoDiscard) {
  issue(io(kFlush));
  end(io(kDiscard));
  EXPECT_EQ(events(CLASS_FLUSH, EVENT_COMPLETION_MISSED), 1U);
  EXPECT_EQ(fake_state.flushes_ended, 1U);
  EXPECT_EQ(fake_state.discards_ended, 0U);
}

TEST_F(BlockPrograms, OfTheSameOperationItEndsWhatWasIssued) {
  const fake_request write = io(kWrite);
  issue(write);
  end(write);
  EXPECT_EQ(fake_hot_cells[CLASS_WRITE].completions, 1U);
  EXPECT_EQ(events(CLASS_WRITE, EVENT_COMPLETION_MISSED) + events(CLASS_WRITE, EVENT_STRAY), 0U);
}

}  // namespace
