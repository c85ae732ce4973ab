// SPDX-License-Identifier: Apache-2.0
#include "daemon/sources/block/cell_decoder.h"

#include <algorithm>
#include <cstddef>

namespace ssdpulse::block {
namespace {

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

void add_words(const CellWords& increments, std::size_t first, std::size_t count, std::vector<std::uint64_t>& words) {
  const auto* begin = increments.histograms.data() + first;
  if (words.empty()) {
    if (std::all_of(begin, begin + count, [](std::uint32_t word) { return word == 0; })) {
      return;
    }
    words.resize(count);
  }
  for (std::size_t i = 0; i < count; ++i) {
    words[i] += begin[i];
  }
}

}  // namespace

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
  switch (status) {
    case 1:
      return model::IoError::unsupported;
    case 2:
      return model::IoError::timeout;
    case 3:
      return model::IoError::nospace;
    case 4:
      return model::IoError::transport;
    case 5:
      return model::IoError::target;
    case 7:
      return model::IoError::medium;
    case 8:
      return model::IoError::protection;
    case 10:
      return model::IoError::io;
    case 12:
      return model::IoError::again;
    case 16:
    case 17:
      return model::IoError::offline;
    default:
      return model::IoError::other;
  }
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
  io.issues += counters[kIssues];
  io.requeues[model::index(model::RequeueReason::driver)] += counters[kReissues];
  io.sequential_bytes += counters[kSequentialBytes];
  io.completions += counters[kCompletions] + counters[kUntimed];
  io.untimed += counters[kUntimed];
  io.bytes += counters[kBytes];
  io.queue_full_ns += counters[kQueueFull];
  io.size.sum_bytes += counters[kSizeSum];
  add_words(increments, 0, SIZE_WORDS, io.size.words);
  io.queue_latency.sum_ns += counters[kQueueSum];
  add_words(increments, kQueueWords, kLatencyBuckets, io.queue_latency.words);
  io.total_latency.sum_ns += counters[kTotalSum];
  add_words(increments, kTotalWords, kLatencyBuckets, io.total_latency.words);
  for (std::size_t during = 0; during < DURINGS; ++during) {
    io.device_latency[during].sum_ns += counters[kDeviceSum + during];
    add_words(increments, kDeviceWords + during * LATENCY_WORDS, kLatencyBuckets, io.device_latency[during].words);
  }
  io.active = io.active || counters[kIssues] != 0 || counters[kCompletions] != 0 || counters[kBytes] != 0;
}

}  // namespace ssdpulse::block
