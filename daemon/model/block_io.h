// SPDX-License-Identifier: Apache-2.0
// The kinds of I/O, interference, error and loss, with their names in metrics, and histograms of latencies and sizes in
// the kernel's own buckets: the daemon adds up and never re-buckets. Each enum (commit apart) has the order of the
// kernel's cells (bpf/abi/block_abi.h); daemon/block/io_cells.cpp asserts that they agree. Values only.
#pragma once

#include <linux/types.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string_view>
#include <vector>

#include "bpf/abi/latency_buckets.h"
#include "daemon/base/complete.h"

namespace ssdpulse::model {

template <typename Enum>
constexpr std::size_t index(Enum value) {
  return static_cast<std::size_t>(value);
}
template <typename Enum, std::size_t Size>
constexpr std::string_view name(Enum value, const std::array<std::string_view, Size>& names) {
  return names[index(value)];
}

/// What has a latency: the operation classes of requests, and `commit`, which is no request, but what a caller of fsync
/// waits for (DeviceIo::commit_latency). `write` includes zone append; `zone` is zone management; `passthrough` is any
/// driver command that bypasses the file system path (op >= 32).
enum class Operation : std::uint8_t {
  read,
  write,
  flush,
  discard,
  write_zeroes,
  secure_erase,
  zone,
  passthrough,
  commit
};
inline constexpr std::size_t kOperations = index(Operation::commit);  // those of requests
inline constexpr auto kOperationNames = util::names<Operation>(
    {"read", "write", "flush", "discard", "write_zeroes", "secure_erase", "zone", "passthrough", "commit"});

inline constexpr auto kRequestNames = [] {
  std::array<std::string_view, kOperations> names{};
  std::copy_n(kOperationNames.begin(), kOperations, names.begin());
  return names;
}();

// Spike operations: those in which spikes are detected. Live: those with a histogram of their own in each second.
// Attributed: those of which it is known whose I/O it was; other requests are the kernel's own or nobody's.
inline constexpr auto kSpikeOperations =
    std::to_array({Operation::read, Operation::write, Operation::flush, Operation::commit});
inline constexpr auto kLiveOperations =
    std::to_array({Operation::read, Operation::write, Operation::flush, Operation::discard, Operation::commit});
inline constexpr auto kAttributedOperations = std::to_array({Operation::read, Operation::write, Operation::discard});

constexpr std::string_view name(Operation operation) { return kOperationNames[index(operation)]; }

template <std::size_t Size>
constexpr auto names_of(const std::array<Operation, Size>& list) {
  std::array<std::string_view, Size> names;
  std::transform(list.begin(), list.end(), names.begin(), [](Operation operation) { return name(operation); });
  return names;
}

inline constexpr auto kSpikeOperationNames = names_of(kSpikeOperations);
inline constexpr auto kLiveOperationNames = names_of(kLiveOperations);
inline constexpr auto kAttributedOperationNames = names_of(kAttributedOperations);

/// The operation of this name, if it is in the list.
template <std::size_t Size>
constexpr std::optional<Operation> operation_named(std::string_view wanted, const std::array<Operation, Size>& list) {
  const auto* found = std::find_if(list.begin(), list.end(), [&](Operation known) { return name(known) == wanted; });
  return found == list.end() ? std::nullopt : std::optional(*found);
}

/// Where an operation is in a list. It must be there.
template <std::size_t Size>
constexpr std::size_t index_in(const std::array<Operation, Size>& list, Operation operation) {
  return static_cast<std::size_t>(std::find(list.begin(), list.end(), operation) - list.begin());
}

/// One value for each operation of a list, in its order.
template <typename Value, const auto& kList>
struct ByOperation : std::array<Value, kList.size()> {
  using Values = std::array<Value, kList.size()>;
  using Values::operator[];
  constexpr Value& operator[](Operation operation) { return Values::operator[](index_in(kList, operation)); }
  constexpr const Value& operator[](Operation operation) const {
    return Values::operator[](index_in(kList, operation));
  }
};

/// What else was in flight on the same drive during a read or write: the closed intervals
/// [issue, final completion] intersect. Decided in the kernel, per I/O.
enum class During : std::uint8_t { none, discard, flush, both };
inline constexpr std::size_t kDurings = util::count_of<During>();
inline constexpr auto kDuringNames = util::names<During>({"none", "discard", "flush", "both"});

/// The kernel's completion status, normalised (include/linux/blk_types.h BLK_STS_*).
enum class IoError : std::uint8_t {
  io,
  medium,
  timeout,
  nospace,
  transport,
  target,
  again,
  offline,
  protection,
  unsupported,
  other
};
inline constexpr std::size_t kIoErrors = util::count_of<IoError>();
inline constexpr auto kIoErrorNames = util::names<IoError>({"io", "medium", "timeout", "nospace", "transport", "target",
                                                            "again", "offline", "protection", "unsupported", "other"});

/// Why a request was issued again: the driver gave it back, or a multipath path failed under it.
enum class RequeueReason : std::uint8_t { driver, failover };
inline constexpr std::size_t kRequeueReasons = util::count_of<RequeueReason>();
inline constexpr auto kRequeueReasonNames = util::names<RequeueReason>({"driver", "failover"});

/// Ways in which the kernel side can fail to measure an I/O on a known device.
enum class Loss : std::uint8_t {
  completion_missed,  // a slot held another request: that one's completion was never seen
  stray,              // a completion without its issue: issued before the daemon started, or the issue was skipped
  slot_collision,     // two requests in flight shared a slot (only where slots are direct-mapped)
  clock,              // an end before its beginning: counted in the zero bucket
  unstamped,          // the kernel gave no start time (iostats=0): no queue time and no total
};
inline constexpr std::size_t kLosses = util::count_of<Loss>();
inline constexpr auto kLossNames =
    util::names<Loss>({"completion_missed", "stray", "slot_collision", "clock", "unstamped"});

/// Losses that belong to no device.
enum class HostLoss : std::uint8_t {
  device_table_full,  // more devices than the tables were sized for
  device_pending,     // I/Os of a new device before the daemon had given it a slot
  queue_id_range,     // a request queue whose number is beyond the table
  freeze_events,      // freezes and thaws of file systems that found no room on their way to the daemon; not I/Os
};
inline constexpr std::size_t kHostLosses = util::count_of<HostLoss>();
inline constexpr auto kHostLossNames =
    util::names<HostLoss>({"device_table_full", "device_pending", "queue_id_range", "freeze_events"});

/// Cumulative latency histogram since `DeviceIo::since`. Layout of `words`: bpf/abi/latency_buckets.h.
/// Native Prometheus schema 3; in exposition, the zero word is the zero bucket (zero_threshold 2^-30 s),
/// the under word counts as native index LATENCY_FIRST_NATIVE_INDEX - 1 and the over word as
/// LATENCY_LAST_NATIVE_INDEX + 1 (classic: only in +Inf).
struct LatencyHistogram {
  std::vector<std::uint64_t> words;  // LATENCY_OVER_WORD + 1 of them, or none before the first sample
  std::uint64_t sum_ns = 0;          // exact

  [[nodiscard]] bool empty() const { return words.empty(); }
  [[nodiscard]] std::uint64_t count() const { return std::accumulate(words.begin(), words.end(), std::uint64_t{0}); }
};

/// Cumulative size histogram. Native Prometheus schema 0: word 0 counts zero bytes (the zero bucket),
/// word 1 + i is native index i, (2^(i-1), 2^i] bytes.
struct SizeHistogram {
  std::vector<std::uint64_t> words;  // SIZE_WORDS of them, or none before the first sample
  std::uint64_t sum_bytes = 0;       // exact

  [[nodiscard]] bool empty() const { return words.empty(); }
  [[nodiscard]] std::uint64_t count() const { return std::accumulate(words.begin(), words.end(), std::uint64_t{0}); }
};

/// Cumulative: how many I/Os were in flight at each sampling. Words as in a SizeHistogram, of I/Os.
struct DepthHistogram {
  static constexpr std::size_t kWords = 18;  // up to 65536 I/Os; more count in the last
  std::vector<std::uint64_t> words;          // kWords of them, or none before the first sampling
  std::uint64_t sum_ios = 0;

  void add(std::uint64_t in_flight) {
    words.resize(kWords);
    ++words[std::min<std::size_t>(in_flight == 0 ? 0 : 1 + std::bit_width(in_flight - 1), kWords - 1)];
    sum_ios += in_flight;
  }
};

}  // namespace ssdpulse::model
