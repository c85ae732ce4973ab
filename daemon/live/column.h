// SPDX-License-Identifier: Apache-2.0
// Column: what the live memory keeps of a DeviceInterval of about a second: quantiles, and the words of total latency.
// Values only, and the few bytes in which a column is kept: counts are variable-length, empty buckets are left out.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "daemon/model/device_interval.h"
#include "daemon/model/snapshot.h"

namespace ssdpulse::live {

using model::ByOperation;
using model::kLiveOperations;
using model::SparseBuckets;

/// The words in which the quantiles of this many I/Os end. Meaningless if there were none.
struct Tail {
  std::uint64_t ios = 0;
  std::uint8_t p50 = 0;
  std::uint8_t p99 = 0;
  std::uint8_t p999 = 0;
  bool operator==(const Tail&) const = default;
};

struct OperationColumn {
  std::uint64_t ios = 0;
  std::uint64_t bytes = 0;     // not for commits
  Tail total;                  // allocation to the end: what the host waited
  Tail device;                 // last issue to the end; reads, writes, flushes and discards in latency mode full
  Tail queue;                  // allocation to the first issue; likewise
  std::int64_t in_flight = 0;  // at the end of the column
  SparseBuckets buckets;       // of total
  bool operator==(const OperationColumn&) const = default;
};

struct Column {
  ByOperation<OperationColumn, kLiveOperations> operations;
  /// Device times of reads and writes by what else was in flight on the drive: [0] reads, [1] writes.
  std::array<std::array<Tail, model::kDurings>, 2> during;
  /// Device times of the reads during which a discard, or a flush, was in flight; those with both are in both.
  SparseBuckets reads_during_discard;
  SparseBuckets reads_during_flush;
  /// Sums over reads and writes, in nanoseconds: in the queue and in the device. Both 0 if neither was timed.
  std::uint64_t queue_ns = 0;
  std::uint64_t device_ns = 0;
  std::uint64_t errors = 0;
  std::uint64_t losses = 0;  // I/Os that could not be measured
  std::uint8_t bursts = 0;   // bit DiscardTrigger: a burst of it was active
  bool in_spike = false;     // of any operation

  bool operator==(const Column&) const = default;
};

/// What a strip of many columns shows for each: small, and without pointers.
struct ColumnSummary {
  static constexpr std::uint8_t kSpike = 1;
  static constexpr std::uint8_t kBurst = 2;
  static constexpr std::uint8_t kError = 4;

  std::uint8_t marks = 0;                            // the bits above
  ByOperation<std::uint8_t, kLiveOperations> p99{};  // words; 0 where there were none

  [[nodiscard]] bool in_spike() const { return (marks & kSpike) != 0; }
  bool operator==(const ColumnSummary&) const = default;
};

ColumnSummary summarize(const Column& column);

/// What the device did in the interval, and what the snapshot at its end says of it.
Column column_of(const model::DeviceInterval& interval, const model::DeviceSnapshot& after);

std::string encode(const Column& column);

/// Nothing if the bytes are not those of one column, complete.
std::optional<Column> decode(std::string_view bytes);

}  // namespace ssdpulse::live
