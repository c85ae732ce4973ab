// SPDX-License-Identifier: Apache-2.0
// Column: what one device did between two snapshots, about a second apart.
// Values only, and the few bytes in which a column is kept: counts are variable-length, empty buckets are left out.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "daemon/model/latency_buckets.h"
#include "daemon/model/snapshot.h"
#include "daemon/util/complete.h"

namespace ssdpulse::live {

using model::SparseBuckets;

/// What has a latency histogram in a column. The first four are operations of the block layer; `commit`: what a caller
/// of fsync waits for.
enum class Kind : std::uint8_t { read, write, flush, discard, commit };
inline constexpr std::size_t kKinds = util::count_of<Kind>();
inline constexpr auto kKindNames = util::names<Kind>({"read", "write", "flush", "discard", "commit"});

/// The words in which the quantiles of this many I/Os end. Meaningless if there were none.
struct Tail {
  std::uint64_t ios = 0;
  std::uint8_t p50 = 0;
  std::uint8_t p99 = 0;
  std::uint8_t p999 = 0;
  bool operator==(const Tail&) const = default;
};

struct KindColumn {
  std::uint64_t ios = 0;
  std::uint64_t bytes = 0;     // not for commits
  Tail total;                  // allocation to the end: what the host waited
  Tail device;                 // last issue to the end; reads, writes, flushes and discards in latency mode full
  Tail queue;                  // allocation to the first issue; likewise
  std::int64_t in_flight = 0;  // at the end of the column
  SparseBuckets buckets;         // of total
  bool operator==(const KindColumn&) const = default;
};

struct Column {
  std::array<KindColumn, kKinds> kinds;
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

  [[nodiscard]] const KindColumn& kind(Kind wanted) const { return kinds[static_cast<std::size_t>(wanted)]; }
  bool operator==(const Column&) const = default;
};

/// What a strip of many columns shows for each: small, and without pointers.
struct ColumnSummary {
  static constexpr std::uint8_t kSpike = 1;
  static constexpr std::uint8_t kBurst = 2;
  static constexpr std::uint8_t kError = 4;

  std::uint8_t marks = 0;                  // the bits above
  std::uint8_t any = 0;                    // bit Kind: there were I/Os
  std::array<std::uint8_t, kKinds> p99{};  // words; 0 where there were none

  [[nodiscard]] bool in_spike() const { return (marks & kSpike) != 0; }
  [[nodiscard]] bool has(Kind kind) const { return (any >> static_cast<unsigned>(kind) & 1U) != 0; }
  bool operator==(const ColumnSummary&) const = default;
};

ColumnSummary summarize(const Column& column);

/// Nothing if `before` or after.io is null, or if a count decreased (the device was replaced).
std::optional<Column> difference(const model::DeviceIo* before, const model::DeviceSnapshot& after);

std::string encode(const Column& column);

/// Nothing if the bytes are not those of one column, complete.
std::optional<Column> decode(std::string_view bytes);

}  // namespace ssdpulse::live
