// SPDX-License-Identifier: Apache-2.0
// CellReader, InFlight, CommitReader: how much the cells in the kernel's tables have counted since the last read, and
// what that means in the model's values. Here alone the layout of io_cell meets the model. Not thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "bpf/abi/block_abi.h"
#include "daemon/model/block_io.h"
#include "daemon/model/snapshot.h"

namespace ssdpulse::block {

/// The kernel writes its tables while we read. Each word is read once, whole, and before whatever is read later.
template <typename Word>
Word load(const Word& word) {
  return __atomic_load_n(&word, __ATOMIC_ACQUIRE);
}

/// Seen after all earlier stores.
template <typename Word>
void store(Word& word, std::type_identity_t<Word> value) {
  __atomic_store_n(&word, value, __ATOMIC_RELEASE);
}

/// An empty histogram stays empty while there are no increments.
void add_counts(std::span<const std::uint32_t> increments, std::vector<std::uint64_t>& histogram);

/// The words of a cell as arrays, in the cell's own order.
inline constexpr std::size_t kCounterWords = 16;  // u64: issues ... untimed, and padding
/// u32: size, queue, total, device, and the padding at the end.
inline constexpr std::size_t kHistogramWords = (sizeof(io_cell) - kCounterWords * sizeof(__u64)) / sizeof(__u32);
struct CellWords {
  std::array<std::uint64_t, kCounterWords> counters{};
  std::array<std::uint32_t, kHistogramWords> histograms{};

  void add(const io_cell& cell);
  void add_completions(const io_cell& cell);  // all counters except the issues
  /// The issues and the histograms. A cell spans two pages, beyond which processors do not read ahead by themselves:
  /// `next`, if there is one, is brought nearer meanwhile.
  void add_the_rest(const io_cell& cell, const io_cell* next = nullptr);
  /// this - earlier, each word modulo its width.
  [[nodiscard]] CellWords since(const CellWords& earlier) const;

 private:
  void add_counters(const io_cell& cell, std::size_t first, std::size_t end);
};

/// Reads the cells of one operation of one device: one for each CPU, or a single one.
///
/// The kernel's histogram words have 32 bits, are per CPU for reads and writes, and are never reset. The sum over the
/// CPUs, modulo 2^32, minus the previous sum is the exact increment if fewer than 2^32 I/Os fall into one bucket
/// between two reads. A cell whose change stamp has not moved is not read: cells that have been quiet for a while are
/// kept as one sum.
class CellReader {
 public:
  /// `stride`: distance between the cells of neighbouring CPUs. What the cells hold now becomes the baseline.
  CellReader(std::span<const io_cell> cells, std::size_t first, std::size_t stride, std::size_t count);

  /// Increments since the last call (or the baseline); null when nothing changed. Valid until the next call.
  const CellWords* read();

 private:
  struct Watch {
    std::uint64_t stamp = 0;
    std::uint32_t ticks_to_quiet = 0;  // 0: the cell is part of quiet_
  };
  [[nodiscard]] const io_cell& cell(std::size_t i) const { return cells_[first_ + i * stride_]; }
  static std::uint64_t stamp_of(const io_cell& cell);

  std::span<const io_cell> cells_;
  std::size_t first_;
  std::size_t stride_;
  std::vector<Watch> watches_;
  CellWords quiet_;  // sum of the quiet cells
  CellWords last_;   // sum of all cells at the last reading
  CellWords increments_;
};

/// Positions of io_cell's counters in CellWords::counters.
inline constexpr std::size_t kIssues = 0;
inline constexpr std::size_t kCompletions = 1;
inline constexpr std::size_t kBytes = 2;
inline constexpr std::size_t kSizeSum = 3;
inline constexpr std::size_t kSequentialBytes = 4;
inline constexpr std::size_t kQueueSum = 5;
inline constexpr std::size_t kTotalSum = 6;
inline constexpr std::size_t kDeviceSum = 7;
inline constexpr std::size_t kReissues = kDeviceSum + DURINGS;
inline constexpr std::size_t kQueueFull = 12;
inline constexpr std::size_t kUntimed = 13;

struct EventIncrements {
  std::array<std::uint64_t, EVENTS> count{};
  std::array<std::uint64_t, STATUSES> errors{};
  bool any = false;
};

EventIncrements increments(const operation_events& now, const operation_events& before);

/// Normalises a blk_status_t (include/linux/blk_types.h). 16 and 17 are both `offline`: the number moved when
/// BLK_STS_ZONE_RESOURCE was removed, and their other meanings concern zoned drives and command duration limits.
model::IoError error_of_status(std::size_t status);

void decode_events(const EventIncrements& events, model::DeviceIo& device, model::OperationIo& io);
void decode_cell(const CellWords& increments, model::OperationIo& io);

/// How many requests of one operation have been issued but not ended, in one row of the kernel's tables.
///
/// Issues minus ends. A request whose end no program saw stays in its slot until another one takes it, which the kernel
/// side counts as a missed completion. If user space finds out earlier, it writes the request off: the missed
/// completion is counted at once, and not again when the slot is taken.
class InFlight {
 public:
  /// Counts since the last call. Removes from `events` the misses and collisions of requests that were written off.
  void add(std::uint64_t issues, std::uint64_t completions, EventIncrements& events);

  /// All of them have ended unseen. Returns how many there were; none are in flight afterwards.
  std::uint64_t mark_missed();

  [[nodiscard]] std::int64_t requests() const { return requests_; }

 private:
  std::int64_t requests_ = 0;
  std::uint64_t written_off_ = 0;  // requests that still hold a slot
};

/// The latencies of commits since the last read, from a device's commit cells.
class CommitReader {
 public:
  /// The cells of one device. What they hold now becomes the baseline.
  explicit CommitReader(std::span<const commit_cell> cells);

  /// Adds what was counted since the last call. Exact if fewer than 2^32 fall into one bucket between two calls.
  void read(model::LatencyHistogram& latency);

 private:
  std::span<const commit_cell> cells_;
  commit_cell last_{};
};

}  // namespace ssdpulse::block
