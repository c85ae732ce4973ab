// SPDX-License-Identifier: Apache-2.0
#include "daemon/live/column.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "daemon/model/sparse_codec.h"
#include "daemon/util/varints.h"

namespace ssdpulse::live {
namespace {

using model::Difference;
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

OperationColumn operation_between(const model::OperationIo& before, const model::OperationIo& after,
                                  Difference& difference) {
  OperationColumn column;
  column.buckets = difference.of(before.total_latency.words, after.total_latency.words);
  column.total = tail_of(column.buckets);
  SparseBuckets device;
  for (std::size_t during = 0; during < model::kDurings; ++during) {
    model::add(device, difference.of(before.device_latency[during].words, after.device_latency[during].words));
  }
  column.device = tail_of(device);
  column.queue = tail_of(difference.of(before.queue_latency.words, after.queue_latency.words));
  const bool timed = std::any_of(after.device_latency.begin(), after.device_latency.end(),
                                 [](const model::LatencyHistogram& one) { return !one.empty(); });
  column.ios = timed ? column.device.ios : column.total.ios;
  column.bytes = difference.of(before.bytes, after.bytes);
  column.in_flight = after.in_flight;
  return column;
}

/// What was in flight during a drive's reads, and where its I/Os waited.
void add_times(Column& column, const model::DeviceIo& before, const model::DeviceIo& now, Difference& difference) {
  using model::During;
  const auto& reads = now.operation(Operation::read).device_latency;
  const auto& reads_before = before.operation(Operation::read).device_latency;
  for (const During during : {During::discard, During::flush, During::both}) {
    const auto words = difference.of(reads_before[model::index(during)].words, reads[model::index(during)].words);
    if (during != During::flush) {
      model::add(column.reads_during_discard, words);
    }
    if (during != During::discard) {
      model::add(column.reads_during_flush, words);
    }
  }
  for (const Operation operation : {Operation::read, Operation::write}) {
    const model::OperationIo& io = now.operation(operation);
    const model::OperationIo& io_before = before.operation(operation);
    column.queue_ns += difference.of(io_before.queue_latency.sum_ns, io.queue_latency.sum_ns);
    for (std::size_t during = 0; during < model::kDurings; ++during) {
      column.device_ns += difference.of(io_before.device_latency[during].sum_ns, io.device_latency[during].sum_ns);
    }
  }
}

Column column_between(const model::DeviceIo& before, const model::DeviceSnapshot& after, Difference& difference) {
  const model::DeviceIo& now = *after.io;
  Column column;
  for (const Operation operation : {Operation::read, Operation::write, Operation::flush, Operation::discard}) {
    column.operations[operation] = operation_between(before.operation(operation), now.operation(operation), difference);
  }
  const auto commits = difference.of(before.commit_latency.words, now.commit_latency.words);
  OperationColumn& commit = column.operations[Operation::commit];
  commit.total = tail_of(commits);
  commit.buckets = commits;
  commit.ios = commit.total.ios;
  for (std::size_t operation = 0; operation < column.during.size(); ++operation) {
    for (std::size_t during = 0; during < model::kDurings; ++during) {
      column.during[operation][during] =
          tail_of(difference.of(before.operations[operation].device_latency[during].words,
                                now.operations[operation].device_latency[during].words));
    }
  }
  add_times(column, before, now, difference);
  for (std::size_t operation = 0; operation < model::kOperations; ++operation) {
    const auto& errors = now.operations[operation].errors;
    const auto& errors_before = before.operations[operation].errors;
    column.errors += difference.of(std::accumulate(errors_before.begin(), errors_before.end(), std::uint64_t{0}),
                                   std::accumulate(errors.begin(), errors.end(), std::uint64_t{0}));
  }
  column.losses = difference.of(std::accumulate(before.losses.begin(), before.losses.end(), std::uint64_t{0}),
                                std::accumulate(now.losses.begin(), now.losses.end(), std::uint64_t{0}));
  for (std::size_t trigger = 0; trigger < model::kDiscardTriggers; ++trigger) {
    column.bursts = static_cast<std::uint8_t>(column.bursts | (after.discards[trigger].active ? 1U << trigger : 0U));
  }
  column.in_spike = std::any_of(after.spikes.begin(), after.spikes.end(),
                                [](const model::SpikeFigures& one) { return one.active.has_value(); });
  return column;
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

std::optional<Column> difference(const model::DeviceIo* before, const model::DeviceSnapshot& after) {
  if (before == nullptr || after.io == nullptr) {
    return std::nullopt;
  }
  Difference difference;
  Column column = column_between(*before, after, difference);
  return difference.good() ? std::optional(std::move(column)) : std::nullopt;
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
