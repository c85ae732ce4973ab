// SPDX-License-Identifier: Apache-2.0
#include "daemon/sources/block/cell_reader.h"

#include <cstddef>
#include <cstring>

#include "daemon/sources/block/kernel_words.h"

namespace ssdpulse::block {
namespace {

static_assert(offsetof(io_cell, issues) == 0);
static_assert(offsetof(io_cell, size) == kCounterWords * sizeof(__u64));
static_assert(offsetof(io_cell, pad) == kCounterWords * sizeof(__u64) + kHistogramWords * sizeof(__u32));

/// A cell counts as quiet after this many idle readings: re-reading all quiet cells is the price of waking one.
constexpr std::uint32_t kTicksToQuiet = 30;

}  // namespace

void CellWords::add(const io_cell& cell) {
  add_completions(cell);
  add_the_rest(cell);
}

void CellWords::add_completions(const io_cell& cell) { add_counters(cell, 1, kCounterWords); }

void CellWords::add_the_rest(const io_cell& cell) {
  add_counters(cell, 0, 1);
  // Aligned words: a copy may be vectorised, but never splits a word on the supported machines.
  std::array<std::uint32_t, kHistogramWords> words;
  std::memcpy(words.data(), cell.size, sizeof(words));
  for (std::size_t i = 0; i < words.size(); ++i) {
    histograms[i] += words[i];
  }
}

void CellWords::add_counters(const io_cell& cell, std::size_t first, std::size_t end) {
  const auto* words = reinterpret_cast<const __u64*>(&cell);
  for (std::size_t i = first; i < end; ++i) {
    counters[i] += load(words[i]);
  }
}

CellWords CellWords::since(const CellWords& earlier) const {
  CellWords difference;
  for (std::size_t i = 0; i < counters.size(); ++i) {
    difference.counters[i] = counters[i] - earlier.counters[i];
  }
  for (std::size_t i = 0; i < histograms.size(); ++i) {
    difference.histograms[i] = histograms[i] - earlier.histograms[i];
  }
  return difference;
}

CellReader::CellReader(std::span<const io_cell> cells, std::size_t first, std::size_t stride, std::size_t count)
    : cells_(cells), first_(first), stride_(stride), watches_(count) {
  for (std::size_t i = 0; i < count; ++i) {
    watches_[i].stamp = stamp_of(cell(i));
    quiet_.add(cell(i));
  }
  last_ = quiet_;
}

std::uint64_t CellReader::stamp_of(const io_cell& cell) {
  // Every event adds to at least one of these, and none ever decreases: their sum stands still iff nothing happened.
  return load(cell.issues) + load(cell.reissues) + load(cell.completions) + load(cell.bytes);
}

const CellWords* CellReader::read() {
  bool changed = false;
  bool woke = false;
  for (std::size_t i = 0; i < watches_.size(); ++i) {
    Watch& watch = watches_[i];
    const std::uint64_t stamp = stamp_of(cell(i));
    if (stamp != watch.stamp) {
      changed = true;
      woke = woke || watch.ticks_to_quiet == 0;
      watch.stamp = stamp;
      watch.ticks_to_quiet = kTicksToQuiet;
    } else if (watch.ticks_to_quiet > 0) {
      // At the last reading a program may have been between its stamp and its histograms: read again.
      changed = changed || watch.ticks_to_quiet == kTicksToQuiet;
      if (--watch.ticks_to_quiet == 0) {
        quiet_.add(cell(i));
      }
    }
  }
  if (!changed) {
    return nullptr;
  }
  if (woke) {
    quiet_ = CellWords{};
  }
  // All completions before any issue: the number in flight may be overstated by new issues, but is never negative.
  CellWords sum;
  for (std::size_t i = 0; i < watches_.size(); ++i) {
    if (watches_[i].ticks_to_quiet > 0) {
      sum.add_completions(cell(i));
    }
  }
  for (std::size_t i = 0; i < watches_.size(); ++i) {
    if (watches_[i].ticks_to_quiet > 0) {
      sum.add_the_rest(cell(i));
    } else if (woke) {
      quiet_.add(cell(i));
    }
  }
  for (std::size_t i = 0; i < kCounterWords; ++i) {
    sum.counters[i] += quiet_.counters[i];
  }
  for (std::size_t i = 0; i < kHistogramWords; ++i) {
    sum.histograms[i] += quiet_.histograms[i];
  }
  increments_ = sum.since(last_);
  last_ = sum;
  return &increments_;
}

}  // namespace ssdpulse::block
