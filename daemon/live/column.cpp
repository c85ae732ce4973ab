// SPDX-License-Identifier: Apache-2.0
#include "daemon/live/column.h"

#include <algorithm>
#include <numeric>

#include "daemon/model/latency_buckets.h"

namespace ssdpulse::live {
namespace {

using model::LatencyBuckets;
using model::Operation;

constexpr auto kOperationOfKind =
    std::to_array<Operation>({Operation::read, Operation::write, Operation::flush, Operation::discard});

/// Thrown when a cumulative count went backwards.
struct Restarted {};

std::uint64_t less(std::uint64_t after, std::uint64_t before) {
  if (after < before) {
    throw Restarted{};
  }
  return after - before;
}

LatencyBuckets words_between(const LatencyBuckets& before, const LatencyBuckets& after) {
  auto difference = model::added(before, after);
  if (!difference) {
    throw Restarted{};
  }
  return std::move(*difference);
}

Tail tail_of(const LatencyBuckets& words) {
  Tail tail;
  tail.ios = model::count(words);
  if (tail.ios > 0) {
    tail.p50 = static_cast<std::uint8_t>(model::quantile_bucket(words, 0.5));
    tail.p99 = static_cast<std::uint8_t>(model::quantile_bucket(words, 0.99));
    tail.p999 = static_cast<std::uint8_t>(model::quantile_bucket(words, 0.999));
  }
  return tail;
}

Buckets buckets_of(const LatencyBuckets& words) {
  Buckets buckets;
  for (std::size_t word = 0; word < words.size(); ++word) {
    if (words[word] > 0) {
      buckets.emplace_back(static_cast<std::uint8_t>(word), words[word]);
    }
  }
  return buckets;
}

KindColumn kind_between(const model::OperationIo& before, const model::OperationIo& after) {
  KindColumn column;
  const auto total = words_between(before.total_latency.words, after.total_latency.words);
  column.total = tail_of(total);
  column.buckets = buckets_of(total);
  LatencyBuckets device;
  for (std::size_t during = 0; during < model::kDurings; ++during) {
    model::add(device, words_between(before.device_latency[during].words, after.device_latency[during].words));
  }
  column.device = tail_of(device);
  column.queue = tail_of(words_between(before.queue_latency.words, after.queue_latency.words));
  column.ios = device.empty() ? column.total.ios : column.device.ios;
  column.bytes = less(after.bytes, before.bytes);
  column.in_flight = after.in_flight;
  return column;
}

/// What was in flight during a drive's reads, and where its I/Os waited.
void add_times(Column& column, const model::DeviceIo& before, const model::DeviceIo& now) {
  using model::During;
  const auto& reads = now.operation(Operation::read).device_latency;
  const auto& reads_before = before.operation(Operation::read).device_latency;
  LatencyBuckets discard;
  LatencyBuckets flush;
  for (const During during : {During::discard, During::flush, During::both}) {
    const auto words = words_between(reads_before[model::index(during)].words, reads[model::index(during)].words);
    if (during != During::flush) {
      model::add(discard, words);
    }
    if (during != During::discard) {
      model::add(flush, words);
    }
  }
  column.reads_during_discard = buckets_of(discard);
  column.reads_during_flush = buckets_of(flush);
  for (const Operation operation : {Operation::read, Operation::write}) {
    const model::OperationIo& io = now.operation(operation);
    const model::OperationIo& io_before = before.operation(operation);
    column.queue_ns += less(io.queue_latency.sum_ns, io_before.queue_latency.sum_ns);
    for (std::size_t during = 0; during < model::kDurings; ++during) {
      column.device_ns += less(io.device_latency[during].sum_ns, io_before.device_latency[during].sum_ns);
    }
  }
}

Column column_between(const model::DeviceIo& before, const model::DeviceSnapshot& after) {
  const model::DeviceIo& now = *after.io;
  Column column;
  for (std::size_t kind = 0; kind < kOperationOfKind.size(); ++kind) {
    const Operation operation = kOperationOfKind[kind];
    column.kinds[kind] = kind_between(before.operation(operation), now.operation(operation));
  }
  const auto commits = words_between(before.commit_latency.words, now.commit_latency.words);
  KindColumn& commit = column.kinds[static_cast<std::size_t>(Kind::commit)];
  commit.total = tail_of(commits);
  commit.buckets = buckets_of(commits);
  commit.ios = commit.total.ios;
  for (std::size_t operation = 0; operation < column.during.size(); ++operation) {
    for (std::size_t during = 0; during < model::kDurings; ++during) {
      column.during[operation][during] =
          tail_of(words_between(before.operations[operation].device_latency[during].words,
                                now.operations[operation].device_latency[during].words));
    }
  }
  add_times(column, before, now);
  for (std::size_t operation = 0; operation < model::kOperations; ++operation) {
    const auto& errors = now.operations[operation].errors;
    const auto& errors_before = before.operations[operation].errors;
    column.errors += less(std::accumulate(errors.begin(), errors.end(), std::uint64_t{0}),
                          std::accumulate(errors_before.begin(), errors_before.end(), std::uint64_t{0}));
  }
  column.losses = less(std::accumulate(now.losses.begin(), now.losses.end(), std::uint64_t{0}),
                       std::accumulate(before.losses.begin(), before.losses.end(), std::uint64_t{0}));
  for (std::size_t trigger = 0; trigger < model::kDiscardTriggers; ++trigger) {
    column.bursts = static_cast<std::uint8_t>(column.bursts | (after.discards[trigger].active ? 1U << trigger : 0U));
  }
  column.in_spike = std::any_of(after.spikes.begin(), after.spikes.end(),
                                [](const model::SpikeFigures& one) { return one.active.has_value(); });
  return column;
}

// --- bytes ---

void put(std::string& out, std::uint64_t value) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<char>(value));
}

std::uint64_t take(std::string_view& in) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; !in.empty() && shift < 64; shift += 7) {
    const auto byte = static_cast<std::uint8_t>(in.front());
    in.remove_prefix(1);
    value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) {
      break;
    }
  }
  return value;
}

std::uint8_t take_byte(std::string_view& in) { return static_cast<std::uint8_t>(take(in)); }

void put(std::string& out, const Tail& tail) {
  put(out, tail.ios);
  if (tail.ios > 0) {
    put(out, tail.p50);
    put(out, tail.p99);
    put(out, tail.p999);
  }
}

Tail take_tail(std::string_view& in) {
  Tail tail;
  tail.ios = take(in);
  if (tail.ios > 0) {
    tail.p50 = take_byte(in);
    tail.p99 = take_byte(in);
    tail.p999 = take_byte(in);
  }
  return tail;
}

bool idle(const KindColumn& kind) { return kind == KindColumn{}; }

void put(std::string& out, const KindColumn& kind) {
  put(out, kind.ios);
  put(out, kind.bytes);
  put(out, kind.total);
  put(out, kind.device);
  put(out, kind.queue);
  put(out, static_cast<std::uint64_t>(kind.in_flight) << 1 ^ static_cast<std::uint64_t>(kind.in_flight >> 63));
}

KindColumn take_kind(std::string_view& in) {
  KindColumn kind;
  kind.ios = take(in);
  kind.bytes = take(in);
  kind.total = take_tail(in);
  kind.device = take_tail(in);
  kind.queue = take_tail(in);
  const std::uint64_t in_flight = take(in);
  kind.in_flight = static_cast<std::int64_t>(in_flight >> 1 ^ (~(in_flight & 1) + 1));
  return kind;
}

void put(std::string& out, const Buckets& buckets) {
  put(out, buckets.size());
  std::uint8_t last = 0;
  for (const auto& [word, ios] : buckets) {
    put(out, static_cast<std::uint8_t>(word - last));
    put(out, ios);
    last = word;
  }
}

Buckets take_buckets(std::string_view& in) {
  Buckets buckets(std::min<std::uint64_t>(take(in), LATENCY_WORDS));
  std::uint8_t last = 0;
  for (auto& [word, ios] : buckets) {
    word = last = static_cast<std::uint8_t>(last + take(in));
    ios = take(in);
  }
  return buckets;
}

}  // namespace

ColumnSummary summarize(const Column& column) {
  ColumnSummary summary;
  summary.marks = static_cast<std::uint8_t>((column.in_spike ? ColumnSummary::kSpike : 0) |
                                            (column.bursts != 0 ? ColumnSummary::kBurst : 0) |
                                            (column.errors > 0 ? ColumnSummary::kError : 0));
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    const Tail& total = column.kinds[kind].total;
    summary.p99[kind] = total.ios > 0 ? total.p99 : std::uint8_t{0};
    summary.any = static_cast<std::uint8_t>(summary.any | (total.ios > 0 ? 1U << kind : 0U));
  }
  return summary;
}

std::optional<Column> difference(const model::DeviceIo* before, const model::DeviceSnapshot& after) {
  if (before == nullptr || after.io == nullptr) {
    return std::nullopt;
  }
  try {
    return column_between(*before, after);
  } catch (const Restarted&) {
    return std::nullopt;
  }
}

// Figures first, so that they can be read without the buckets. Anything idle is one bit. The history keeps these bytes:
// new fields go last.
std::string encode(const Column& column) {
  std::string out;
  std::uint64_t busy = 0;
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    busy |= (idle(column.kinds[kind]) ? 0ULL : 1ULL) << kind;
  }
  put(out, busy);
  put(out, column.errors);
  put(out, column.losses);
  put(out, column.bursts);
  put(out, column.in_spike ? 1U : 0U);
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    if ((busy >> kind & 1) != 0) {
      put(out, column.kinds[kind]);
    }
  }
  for (const auto& operation : column.during) {
    for (const Tail& tail : operation) {
      put(out, tail);
    }
  }
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    if ((busy >> kind & 1) != 0) {
      put(out, column.kinds[kind].buckets);
    }
  }
  if (busy != 0) {
    put(out, column.reads_during_discard);
    put(out, column.reads_during_flush);
    put(out, column.queue_ns);
    put(out, column.device_ns);
  }
  return out;
}

Column decode(std::string_view bytes, Depth depth) {
  Column column;
  const std::uint64_t busy = take(bytes);
  column.errors = take(bytes);
  column.losses = take(bytes);
  column.bursts = take_byte(bytes);
  column.in_spike = take(bytes) != 0;
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    if ((busy >> kind & 1) != 0) {
      column.kinds[kind] = take_kind(bytes);
    }
  }
  for (auto& operation : column.during) {
    for (Tail& tail : operation) {
      tail = take_tail(bytes);
    }
  }
  for (std::size_t kind = 0; kind < kKinds && depth == Depth::buckets; ++kind) {
    if ((busy >> kind & 1) != 0) {
      column.kinds[kind].buckets = take_buckets(bytes);
    }
  }
  if (busy != 0 && depth == Depth::buckets) {
    column.reads_during_discard = take_buckets(bytes);
    column.reads_during_flush = take_buckets(bytes);
    column.queue_ns = take(bytes);
    column.device_ns = take(bytes);
  }
  return column;
}

double upper_bound(std::uint8_t word) { return model::upper_bound_seconds(word); }

std::uint8_t quantile(const Buckets& buckets, double share) {
  LatencyBuckets words(LATENCY_OVER_WORD + 1);
  for (const auto& [word, ios] : buckets) {
    words[std::min<std::size_t>(word, LATENCY_OVER_WORD)] += ios;
  }
  return static_cast<std::uint8_t>(model::quantile_bucket(words, share));
}

Buckets add(const Buckets& a, const Buckets& b) {
  Buckets sum;
  auto left = a.begin();
  auto right = b.begin();
  while (left != a.end() || right != b.end()) {
    if (right == b.end() || (left != a.end() && left->first < right->first)) {
      sum.push_back(*left++);
    } else if (left == a.end() || right->first < left->first) {
      sum.push_back(*right++);
    } else {
      sum.emplace_back(left->first, left->second + right->second);
      ++left;
      ++right;
    }
  }
  return sum;
}

std::uint64_t count(const Buckets& buckets) {
  return std::accumulate(buckets.begin(), buckets.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const auto& bucket) { return sum + bucket.second; });
}

}  // namespace ssdpulse::live
