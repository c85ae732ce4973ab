// SPDX-License-Identifier: Apache-2.0
// Ring: the columns of the last 15 minutes of all devices, one frame per snapshot.
//
// It takes the memory that its frames need, and never more than its limit. The busier the devices, the longer a frame:
// if 15 minutes do not fit, the oldest frames go first and the reach is shorter, which readers can see. One thread
// writes, any number read; they only copy under a lock, and do everything else without it.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/live/column.h"

namespace ssdpulse::live {

/// The time of a column, and its bytes. If a column does not begin where the one before ended, the wall clock was set
/// or the host slept: the time in between belongs to no column.
struct Second {
  std::uint64_t number = 0;  // of the snapshot at its end
  model::WallTime end;
  std::chrono::milliseconds length{};
  std::optional<std::string> bytes;  // encode(); absent: the device was not measured then
};

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

}  // namespace ssdpulse::live
