// SPDX-License-Identifier: Apache-2.0
#include "daemon/block/io_cells.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <utility>

namespace ssdpulse::block {
namespace {

static_assert(offsetof(io_cell, issues) == 0);
static_assert(offsetof(io_cell, size) == kCounterWords * sizeof(__u64));
static_assert(offsetof(io_cell, pad) + sizeof(io_cell::pad) == sizeof(io_cell));

static_assert(offsetof(io_cell, queue_sum_ns) == kQueueSum * sizeof(__u64));
static_assert(offsetof(io_cell, completions) == kCompletions * sizeof(__u64));
static_assert(offsetof(io_cell, reissues) == kReissues * sizeof(__u64));
static_assert(offsetof(io_cell, device_sum_ns) == kDeviceSum * sizeof(__u64));
static_assert(offsetof(io_cell, queue_full_ns) == kQueueFull * sizeof(__u64));
static_assert(offsetof(io_cell, untimed) == kUntimed * sizeof(__u64));

// The kernel's classes are the model's operations, in the same order.
static_assert(model::index(model::Operation::read) == CLASS_READ && model::kOperations == CLASSES);
static_assert(model::index(model::Operation::passthrough) == CLASS_PASSTHROUGH);
static_assert(model::index(model::During::both) == DURINGS - 1);

constexpr std::size_t kQueueWords = SIZE_WORDS;
constexpr std::size_t kTotalWords = kQueueWords + LATENCY_WORDS;
constexpr std::size_t kDeviceWords = kTotalWords + LATENCY_WORDS;
constexpr std::size_t kLatencyBuckets = LATENCY_OVER_WORD + 1;

/// A cell counts as quiet after this many idle readings: re-reading all quiet cells is the price of waking one.
constexpr std::uint32_t kTicksToQuiet = 30;

/// Adds the words of a histogram, and brings those of the next cell nearer meanwhile.
template <std::size_t kWords>
void add_words(const __u32* words, const __u32* next, __u32* sum) {
  constexpr std::size_t kLineWords = 64 / sizeof(__u32);
  constexpr std::size_t kWholeLines = kWords / kLineWords * kLineWords;
  // Aligned words: a copy may be vectorised, but never splits a word on the supported machines.
  std::array<__u32, kLineWords> line;
  for (std::size_t word = 0; word < kWholeLines; word += kLineWords) {
    __builtin_prefetch(next + word, 0, 2);
    std::memcpy(line.data(), words + word, sizeof(line));
    for (std::size_t i = 0; i < kLineWords; ++i) {
      sum[word + i] += line[i];
    }
  }
  std::array<__u32, kWords - kWholeLines> rest;
  std::memcpy(rest.data(), words + kWholeLines, sizeof(rest));
  for (std::size_t i = 0; i < rest.size(); ++i) {
    sum[kWholeLines + i] += rest[i];
  }
}

/// Of a blk_status_t (include/linux/blk_types.h); any other is IoError::other.
constexpr auto kErrorOfStatus = std::to_array<std::pair<std::size_t, model::IoError>>({
    {1, model::IoError::unsupported},
    {2, model::IoError::timeout},
    {3, model::IoError::nospace},
    {4, model::IoError::transport},
    {5, model::IoError::target},
    {7, model::IoError::medium},
    {8, model::IoError::protection},
    {10, model::IoError::io},
    {12, model::IoError::again},
    {16, model::IoError::offline},
    {17, model::IoError::offline},
});

}  // namespace

void add_counts(std::span<const std::uint32_t> increments, std::vector<std::uint64_t>& histogram) {
  if (histogram.empty() && std::all_of(increments.begin(), increments.end(), [](auto count) { return count == 0; })) {
    return;
  }
  histogram.resize(increments.size());
  for (std::size_t i = 0; i < increments.size(); ++i) {
    histogram[i] += increments[i];
  }
}

void CellWords::add(const io_cell& cell) {
  add_completions(cell);
  add_the_rest(cell);
}

void CellWords::add_completions(const io_cell& cell) { add_counters(cell, 1, kCounterWords); }

void CellWords::add_the_rest(const io_cell& cell, const io_cell* next) {
  add_counters(cell, 0, 1);
  const io_cell& ahead = next == nullptr ? cell : *next;
  add_words<SIZE_WORDS>(cell.size, ahead.size, histograms.data());
  add_words<LATENCY_WORDS>(cell.queue, ahead.queue, &histograms[kQueueWords]);
  add_words<LATENCY_WORDS>(cell.total, ahead.total, &histograms[kTotalWords]);
  add_words<LATENCY_WORDS>(cell.device[0], ahead.device[0], &histograms[kDeviceWords]);
  for (std::size_t during = 1; during < DURINGS; ++during) {
    const std::size_t first = kDeviceWords + during * LATENCY_WORDS;
    if (load(cell.device_sum_ns[during]) != 0) {
      add_words<LATENCY_WORDS>(cell.device[during], ahead.device[during], &histograms[first]);
    } else {
      // Nothing to read: an I/O that took any time at all changed the sum. Others are in this word.
      histograms[first + LATENCY_ZERO_WORD] += load(cell.device[during][LATENCY_ZERO_WORD]);
    }
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
  std::transform(counters.begin(), counters.end(), earlier.counters.begin(), difference.counters.begin(), std::minus());
  std::transform(histograms.begin(), histograms.end(), earlier.histograms.begin(), difference.histograms.begin(),
                 std::minus());
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
  // Far apart in memory: processors do not foresee which lines are next.
  constexpr std::size_t kAhead = 8;
  for (std::size_t i = 0; i < watches_.size(); ++i) {
    if (i + kAhead < watches_.size()) {
      __builtin_prefetch(&cell(i + kAhead).issues);
      __builtin_prefetch(&cell(i + kAhead).reissues);
    }
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
      const bool next_too = i + 1 < watches_.size() && watches_[i + 1].ticks_to_quiet > 0;
      sum.add_the_rest(cell(i), next_too ? &cell(i + 1) : nullptr);
    } else if (woke) {
      quiet_.add(cell(i));
    }
  }
  std::transform(sum.counters.begin(), sum.counters.end(), quiet_.counters.begin(), sum.counters.begin(), std::plus());
  std::transform(sum.histograms.begin(), sum.histograms.end(), quiet_.histograms.begin(), sum.histograms.begin(),
                 std::plus());
  increments_ = sum.since(last_);
  last_ = sum;
  return &increments_;
}

EventIncrements increments(const operation_events& now, const operation_events& before) {
  EventIncrements result;
  for (std::size_t i = 0; i < EVENTS; ++i) {
    result.count[i] = now.count[i] - before.count[i];
    result.any = result.any || result.count[i] != 0;
  }
  for (std::size_t i = 0; i < STATUSES; ++i) {
    result.errors[i] = now.errors[i] - before.errors[i];
    result.any = result.any || result.errors[i] != 0;
  }
  return result;
}

model::IoError error_of_status(std::size_t status) {
  const auto* const known = std::find_if(kErrorOfStatus.begin(), kErrorOfStatus.end(),
                                         [&](const auto& entry) { return entry.first == status; });
  return known == kErrorOfStatus.end() ? model::IoError::other : known->second;
}

void decode_events(const EventIncrements& events, model::DeviceIo& device, model::OperationIo& io) {
  const auto add_loss = [&](model::Loss loss, std::size_t event) {
    device.losses[model::index(loss)] += events.count[event];
  };
  add_loss(model::Loss::completion_missed, EVENT_COMPLETION_MISSED);
  add_loss(model::Loss::stray, EVENT_STRAY);
  add_loss(model::Loss::slot_collision, EVENT_SLOT_COLLISION);
  add_loss(model::Loss::clock, EVENT_CLOCK);
  add_loss(model::Loss::unstamped, EVENT_UNSTAMPED);
  io.unissued_completions += events.count[EVENT_UNISSUED];
  io.requeues[model::index(model::RequeueReason::failover)] += events.count[EVENT_FAILOVER];
  for (std::size_t status = 0; status < STATUSES; ++status) {
    io.errors[model::index(error_of_status(status))] += events.errors[status];
  }
  io.active = true;
}

void decode_cell(const CellWords& increments, model::OperationIo& io) {
  const auto& counters = increments.counters;
  const auto buckets = [&](std::size_t first, std::size_t count) {
    return std::span(increments.histograms).subspan(first, count);
  };
  io.issues += counters[kIssues];
  io.requeues[model::index(model::RequeueReason::driver)] += counters[kReissues];
  io.sequential_bytes += counters[kSequentialBytes];
  io.completions += counters[kCompletions] + counters[kUntimed];
  io.untimed += counters[kUntimed];
  io.bytes += counters[kBytes];
  io.queue_full_ns += counters[kQueueFull];
  io.size.sum_bytes += counters[kSizeSum];
  add_counts(buckets(0, SIZE_WORDS), io.size.words);
  io.queue_latency.sum_ns += counters[kQueueSum];
  add_counts(buckets(kQueueWords, kLatencyBuckets), io.queue_latency.words);
  io.total_latency.sum_ns += counters[kTotalSum];
  add_counts(buckets(kTotalWords, kLatencyBuckets), io.total_latency.words);
  for (std::size_t during = 0; during < DURINGS; ++during) {
    io.device_latency[during].sum_ns += counters[kDeviceSum + during];
    add_counts(buckets(kDeviceWords + during * LATENCY_WORDS, kLatencyBuckets), io.device_latency[during].words);
  }
  io.active = io.active || counters[kIssues] != 0 || counters[kCompletions] != 0 || counters[kBytes] != 0;
}

void InFlight::add(std::uint64_t issues, std::uint64_t completions, EventIncrements& events) {
  for (const std::size_t taken : std::array<std::size_t, 2>{EVENT_COMPLETION_MISSED, EVENT_SLOT_COLLISION}) {
    const std::uint64_t known = std::min(events.count[taken], written_off_);
    events.count[taken] -= known;
    written_off_ -= known;
  }
  requests_ += static_cast<std::int64_t>(issues - completions - events.count[EVENT_FAILOVER] -
                                         events.count[EVENT_COMPLETION_MISSED] - events.count[EVENT_SLOT_COLLISION]);
  if (requests_ < 0) {
    // A request that was written off was seen to end after all: the kernel does not count it as missed.
    const std::uint64_t back = std::min(static_cast<std::uint64_t>(-requests_), written_off_);
    requests_ += static_cast<std::int64_t>(back);
    written_off_ -= back;
  }
}

std::uint64_t InFlight::mark_missed() {
  if (requests_ <= 0) {
    return 0;
  }
  const auto requests = static_cast<std::uint64_t>(std::exchange(requests_, 0));
  written_off_ += requests;
  return requests;
}

CommitReader::CommitReader(std::span<const commit_cell> cells) : cells_(cells) {
  model::LatencyHistogram of_an_earlier_device;
  read(of_an_earlier_device);
}

void CommitReader::read(model::LatencyHistogram& latency) {
  commit_cell now{};
  for (const commit_cell& cell : cells_) {
    now.commits += load(cell.commits);
  }
  if (now.commits == last_.commits) {
    return;
  }
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    const commit_cell& cell = cells_[i];
    if (load(cell.commits) == 0) {
      continue;
    }
    const bool next_too = i + 1 < cells_.size() && load(cells_[i + 1].commits) != 0;
    now.sum_ns += load(cell.sum_ns);
    add_words<LATENCY_WORDS>(cell.latency, next_too ? cells_[i + 1].latency : cell.latency, now.latency);
  }
  latency.sum_ns += now.sum_ns - last_.sum_ns;
  latency.words.resize(LATENCY_OVER_WORD + 1);
  for (std::size_t word = 0; word <= LATENCY_OVER_WORD; ++word) {
    latency.words[word] += now.latency[word] - last_.latency[word];  // modulo 2^32, as the kernel counts
  }
  last_ = now;
}

}  // namespace ssdpulse::block
