// SPDX-License-Identifier: Apache-2.0
// Is each commit read once, whichever CPU counted it, and however often the kernel's words have wrapped? Cells are
// plain memory here, written as the kernel would; the oracle counts in 64 bits.
#include <gtest/gtest.h>
#include <linux/types.h>
#include <rapidcheck.h>

#include <cstdint>
#include <span>
#include <vector>

#include "daemon/block/io_cells.h"

namespace {

using namespace ssdpulse;
using namespace ssdpulse::block;

void commit(commit_cell& cell, std::uint32_t word, std::uint32_t times, std::uint64_t each_ns) {
  cell.sum_ns += each_ns * times;
  cell.latency[word] += times;  // wraps at 2^32, as in the kernel
  cell.commits += times;
}

TEST(CommitReader, IncrementsAreExactAcrossCpusAndWraps) {
  EXPECT_TRUE(rc::check("sum of increments == sum of commits", [] {
    std::vector<commit_cell> cells(*rc::gen::inRange<std::size_t>(1, 9));
    for (commit_cell& cell : cells) {
      // Left behind by an earlier device, close to wrapping.
      commit(cell, 7, *rc::gen::inRange<std::uint32_t>(0xffff0000U, 0xffffffffU), 3);
    }
    CommitReader reader(cells);
    model::LatencyHistogram latency;
    std::uint64_t commits = 0;
    std::uint64_t sum_ns = 0;
    const auto rounds = *rc::gen::inRange(1, 40);
    for (int round = 0; round < rounds; ++round) {
      for (commit_cell& cell : cells) {
        const auto times = *rc::gen::inRange<std::uint32_t>(0, 0x0fffffff);
        commit(cell, 7, times, 1000);
        commits += times;
        sum_ns += std::uint64_t{1000} * times;
      }
      reader.read(latency);
      RC_ASSERT(latency.count() == commits);
      RC_ASSERT(latency.sum_ns == sum_ns);
    }
  }));
}

TEST(CommitReader, EarlierCommitsAreNotAttributed) {
  std::vector<commit_cell> cells(2);
  commit(cells[1], 12, 5, 100);
  CommitReader reader(cells);
  model::LatencyHistogram latency;
  reader.read(latency);
  EXPECT_TRUE(latency.empty()) << "no histogram before the first commit";
  commit(cells[0], LATENCY_ZERO_WORD, 1, 0);
  commit(cells[1], LATENCY_OVER_WORD, 1, 70'000'000'000);
  reader.read(latency);
  EXPECT_EQ(latency.words.size(), LATENCY_OVER_WORD + 1U);
  EXPECT_EQ(latency.words.at(LATENCY_ZERO_WORD), 1U);
  EXPECT_EQ(latency.words.at(LATENCY_OVER_WORD), 1U);
  EXPECT_EQ(latency.sum_ns, 70'000'000'000U);
}

TEST(CommitReader, TwoPathsAddUp) {
  std::vector<commit_cell> cells(2);
  CommitReader one{std::span(cells).first(1)};
  CommitReader other{std::span(cells).last(1)};
  commit(cells[0], 20, 2, 10);
  commit(cells[1], 20, 3, 10);
  model::LatencyHistogram latency;
  one.read(latency);
  other.read(latency);
  EXPECT_EQ(latency.words.at(20), 5U);
  EXPECT_EQ(latency.sum_ns, 50U);
}

TEST(CommitReader, ACommitInProgressIsFoundAtTheNextReading) {
  std::vector<commit_cell> cells(1);
  CommitReader reader(cells);
  model::LatencyHistogram latency;
  cells[0].sum_ns += 100;
  cells[0].latency[9] += 1;  // the program has not written its last word yet
  reader.read(latency);
  EXPECT_TRUE(latency.empty());
  cells[0].commits += 1;
  reader.read(latency);
  EXPECT_EQ(latency.count(), 1U);
  EXPECT_EQ(latency.sum_ns, 100U);
}

}  // namespace
