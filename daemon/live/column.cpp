// SPDX-License-Identifier: Apache-2.0
#include "daemon/live/column.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "daemon/model/sparse_codec.h"
#include "daemon/util/varints.h"

namespace ssdpulse::live {
namespace {

using model::Operation;
using util::VarintReader;
using util::VarintWriter;

Tail tail_of(const SparseBuckets& words) {
  Tail tail;
  tail.ios = model::count(words);
  if (tail.ios > 0) {
    tail.p50 = static_cast<std::uint8_t>(model::quantile_bucket(words, 0.5));
    tail.p99 = static_cast<std::uint8_t>(model::quantile_bucket(words, 0.99));
    tail.p999 = static_cast<std::uint8_t>(model::quantile_bucket(words, 0.999));
  }
  return tail;
}

OperationColumn column_of(const model::OperationInterval& interval) {
  OperationColumn column;
  column.buckets = interval.total.words;
  column.total = tail_of(column.buckets);
  column.device = tail_of(interval.in_device().words);
  column.queue = tail_of(interval.queue.words);
  column.ios = column.device.ios > 0 ? column.device.ios : column.total.ios;
  column.bytes = interval.bytes;
  column.in_flight = interval.in_flight_after;
  return column;
}

/// The device times of an operation's I/Os while it was in flight, alone or with the other.
SparseBuckets during(const model::OperationInterval& interval, model::During only) {
  SparseBuckets words = interval.device[index(only)].words;
  model::add(words, interval.device[index(model::During::both)].words);
  return words;
}

// --- bytes ---

void put(VarintWriter& out, const Tail& tail) {
  out.put(tail.ios);
  if (tail.ios > 0) {
    out.put(tail.p50).put(tail.p99).put(tail.p999);
  }
}

std::uint8_t take_word(VarintReader& in) { return static_cast<std::uint8_t>(in.take(LATENCY_OVER_WORD)); }

Tail take_tail(VarintReader& in) {
  Tail tail;
  tail.ios = in.take();
  if (tail.ios > 0) {
    tail.p50 = take_word(in);
    tail.p99 = take_word(in);
    tail.p999 = take_word(in);
  }
  return tail;
}

bool idle(const OperationColumn& column) { return column == OperationColumn{}; }

void put(VarintWriter& out, const OperationColumn& column) {
  out.put(column.ios).put(column.bytes);
  put(out, column.total);
  put(out, column.device);
  put(out, column.queue);
  out.put_signed(column.in_flight);
  model::put(out, column.buckets);
}

OperationColumn take_operation(VarintReader& in) {
  OperationColumn column;
  column.ios = in.take();
  column.bytes = in.take();
  column.total = take_tail(in);
  column.device = take_tail(in);
  column.queue = take_tail(in);
  column.in_flight = in.take_signed();
  column.buckets = model::take_words(in);
  return column;
}

}  // namespace

ColumnSummary summarize(const Column& column) {
  ColumnSummary summary;
  summary.marks = static_cast<std::uint8_t>((column.in_spike ? ColumnSummary::kSpike : 0) |
                                            (column.bursts != 0 ? ColumnSummary::kBurst : 0) |
                                            (column.errors > 0 ? ColumnSummary::kError : 0));
  for (std::size_t i = 0; i < kLiveOperations.size(); ++i) {
    const Tail& total = column.operations[i].total;
    summary.p99[i] = total.ios > 0 ? total.p99 : std::uint8_t{0};
  }
  return summary;
}

Column column_of(const model::DeviceInterval& interval, const model::DeviceSnapshot& after) {
  Column column;
  for (const Operation operation : kLiveOperations) {
    column.operations[operation] = column_of(interval.operation(operation));
  }
  for (const Operation operation : {Operation::read, Operation::write}) {
    const model::OperationInterval& one = interval.operation(operation);
    for (std::size_t during = 0; during < model::kDurings; ++during) {
      column.during[index(operation)][during] = tail_of(one.device[during].words);
    }
    column.queue_ns += one.queue.sum_ns;
    column.device_ns += one.device_ns();
  }
  column.reads_during_discard = during(interval.operation(Operation::read), model::During::discard);
  column.reads_during_flush = during(interval.operation(Operation::read), model::During::flush);
  for (const model::OperationInterval& one : interval.operations) {
    column.errors += one.errors;
  }
  column.losses = std::accumulate(interval.losses.begin(), interval.losses.end(), std::uint64_t{0});
  for (std::size_t trigger = 0; trigger < model::kDiscardTriggers; ++trigger) {
    column.bursts = static_cast<std::uint8_t>(column.bursts | (after.discards[trigger].active ? 1U << trigger : 0U));
  }
  column.in_spike = std::any_of(after.spikes.begin(), after.spikes.end(),
                                [](const model::SpikeFigures& one) { return one.active.has_value(); });
  return column;
}

// Anything idle is one bit.
std::string encode(const Column& column) {
  VarintWriter out;
  std::uint64_t busy = 0;
  for (std::size_t i = 0; i < kLiveOperations.size(); ++i) {
    busy |= (idle(column.operations[i]) ? 0ULL : 1ULL) << i;
  }
  out.put(busy).put(column.errors).put(column.losses).put(column.bursts).put(column.in_spike ? 1 : 0);
  for (const OperationColumn& one : column.operations) {
    if (!idle(one)) {
      put(out, one);
    }
  }
  for (const auto& operation : column.during) {
    for (const Tail& tail : operation) {
      put(out, tail);
    }
  }
  if (busy != 0) {
    model::put(out, column.reads_during_discard);
    model::put(out, column.reads_during_flush);
    out.put(column.queue_ns).put(column.device_ns);
  }
  return out.take();
}

std::optional<Column> decode(std::string_view bytes) {
  VarintReader in(bytes);
  Column column;
  const std::uint64_t busy = in.take((1U << kLiveOperations.size()) - 1);
  column.errors = in.take();
  column.losses = in.take();
  column.bursts = static_cast<std::uint8_t>(in.take(0xFF));
  column.in_spike = in.take(1) != 0;
  for (std::size_t i = 0; i < kLiveOperations.size(); ++i) {
    if ((busy >> i & 1) != 0) {
      column.operations[i] = take_operation(in);
    }
  }
  for (auto& operation : column.during) {
    for (Tail& tail : operation) {
      tail = take_tail(in);
    }
  }
  if (busy != 0) {
    column.reads_during_discard = model::take_words(in);
    column.reads_during_flush = model::take_words(in);
    column.queue_ns = in.take();
    column.device_ns = in.take();
  }
  return in.whole() ? std::optional(std::move(column)) : std::nullopt;
}

}  // namespace ssdpulse::live
