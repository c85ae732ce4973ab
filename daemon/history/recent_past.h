// SPDX-License-Identifier: Apache-2.0
// RecentPast: what has happened recently, as far as memory reaches: the columns of the last 15 minutes, in a Ring, and
// the latest spikes, waits and bursts. A Column is what it keeps of a DeviceInterval of about a second: quantiles, and
// the buckets of total latency, encoded in a few bytes. One thread feeds it with each Snapshot; any number read.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/model/device_interval.h"
#include "daemon/model/snapshot.h"

namespace ssdpulse::history {

using model::ByOperation;
using model::kLiveOperations;
using model::SparseBuckets;

/// The buckets in which the quantiles of this many I/Os end. Meaningless if there were none.
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
  ByOperation<std::uint8_t, kLiveOperations> p99{};  // buckets; 0 where there were no I/Os

  [[nodiscard]] bool in_spike() const { return (marks & kSpike) != 0; }
  bool operator==(const ColumnSummary&) const = default;
};

ColumnSummary summarize(const Column& column);

/// What the device did in the interval, and what the snapshot at its end says of it.
Column column_of(const model::DeviceInterval& interval, const model::DeviceSnapshot& after);

std::string encode(const Column& column);

/// Nothing if the bytes are not exactly one complete column.
std::optional<Column> decode(std::string_view bytes);

/// The time of a column, and its bytes. If a column does not begin where the one before ended, the wall clock was set
/// or the host slept: the time in between belongs to no column.
struct Second {
  std::uint64_t number = 0;  // of the snapshot at its end
  model::WallTime end;
  std::chrono::milliseconds length{};
  std::optional<std::string> bytes;  // encode(); absent: the device was not measured then
};

/// The columns of the last 15 minutes of all devices, one frame per snapshot. It takes the memory that its frames need,
/// and never more than its limit. The busier the devices, the longer a frame: if 15 minutes do not fit, the oldest
/// frames go first and the reach is shorter, which readers can see. Readers only copy under a lock.
class Ring {
 public:
  static constexpr std::size_t kFrames = 900;  // 15 minutes at one snapshot per second

  /// A busy column is 300 to 600 bytes: 8 MiB hold 15 minutes of 16 busy devices.
  static constexpr std::size_t kBytes = 8U << 20;

  explicit Ring(std::size_t limit_bytes = kBytes) : limit_bytes_(limit_bytes) {}

  struct Frame {
    std::uint64_t number = 0;
    model::WallTime end;
    std::chrono::milliseconds length{};
    struct Entry {
      std::string device;
      ColumnSummary summary;
      std::string column;  // encode()
    };
    std::vector<Entry> entries;
  };
  /// A frame that is longer than the whole ring is not kept, but those before it are. Columns of 64 KiB or more
  /// are left out.
  void push(const Frame& frame);

  /// The device's columns of all frames whose number is greater, oldest first.
  [[nodiscard]] std::vector<Second> after(std::uint64_t number, std::string_view device) const;

  /// All devices' columns in summary form, of the frames up to number `newest`, oldest first. Reads no column's bytes,
  /// so it can be called once a second.
  struct Summaries {
    std::vector<std::uint64_t> numbers;
    std::vector<model::WallTime> ends;
    struct Device {
      std::string name;
      std::vector<std::optional<ColumnSummary>> columns;  // one per frame; absent: it was not measured then
    };
    std::vector<Device> devices;  // those with a column
  };
  [[nodiscard]] Summaries summaries(std::uint64_t newest) const;

  struct Reach {
    std::uint64_t first = 0;  // numbers of the oldest and the newest frame; 0: there is none
    std::uint64_t last = 0;
    model::WallTime begin;  // of the oldest
  };
  [[nodiscard]] Reach reach() const;
  [[nodiscard]] std::size_t capacity() const { return limit_bytes_; }

 private:
  struct StoredFrame {
    std::string bytes;
    std::uint64_t number;
    model::WallTime end;
    std::chrono::milliseconds length;
  };

  std::size_t limit_bytes_;
  mutable std::mutex mutex_;
  std::deque<StoredFrame> frames_;  // oldest first
  std::size_t bytes_ = 0;           // of all of them
};

class RecentPast {
 public:
  static constexpr std::size_t kMarks = 512;  // spikes, and as many bursts; the oldest are forgotten

  explicit RecentPast(std::size_t ring_bytes = Ring::kBytes) : ring_(ring_bytes) {}

  /// `at`: when it was taken, by a clock that is never set. It distinguishes a column that took long from a wall clock
  /// that was set, or a host that slept; without it, the wall clock is trusted.
  void observe(const model::Snapshot& snapshot, std::optional<std::chrono::steady_clock::time_point> at = std::nullopt);

  [[nodiscard]] const Ring& ring() const { return ring_; }
  [[nodiscard]] std::vector<model::LatencySpike> ended_spikes() const;  // in the order in which causes became final
  [[nodiscard]] std::vector<model::HostWait> ended_waits() const;       // in the order in which they ended
  [[nodiscard]] std::vector<model::Burst> bursts() const;               // by their beginning
  /// When measuring began; what was before is unknown.
  [[nodiscard]] std::optional<model::WallTime> since() const;
  /// The time since which no spike was forgotten; not before since().
  [[nodiscard]] std::optional<model::WallTime> remembered_since() const;

 private:
  struct DeviceState {
    std::array<bool, model::kDiscardTriggers> bursting{};
    std::array<std::uint64_t, model::kDiscardTriggers> burst_bytes{};  // cumulative, before the burst if one is active
    bool seen = false;
  };
  void note_bursts(const model::DeviceSnapshot& device, const DeviceState& before, DeviceState& now,
                   model::WallTime at);
  model::Burst* open_burst(const std::string& device, model::DiscardTrigger trigger);

  Ring ring_;
  std::map<std::string, DeviceState> states_;
  std::optional<model::WallTime> last_;
  std::optional<std::chrono::steady_clock::time_point> last_at_;

  mutable std::mutex mutex_;  // guards what follows
  std::vector<model::LatencySpike> spikes_;
  std::vector<model::HostWait> waits_;
  std::vector<model::Burst> bursts_;
  std::optional<model::WallTime> since_;
  std::optional<model::WallTime> forgotten_until_;  // the end of the newest spike that is forgotten
};

}  // namespace ssdpulse::history
