// SPDX-License-Identifier: Apache-2.0
// HostDrift: does the drive's host counter grow by what the block layer wrote?
// Every drive counts writes. No standard says whether it counts the other commands that change data, write zeroes and
// discards: an FDP drive may count write zeroes that its health page leaves out. Until that is known, the bounds of the
// drift allow for either. It is learned, per command, from what the counter grew by beyond the writes
//   less than half of what was zeroed (discarded)                              it does not count that
//   as much as was zeroed, to a quarter, and that was more than all the rest   it does
// between two readings, or since the start. A drive that is inconsistent (it may look at the command's deallocate bit)
// stays unknown. Only counters that follow every poll teach this.
// The bounds do not cover what the drift is meant to show: what the block layer counts as none of these, such as
// passthrough, and what other hosts write.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "daemon/analysis/write_amplification/counter_interval.h"
#include "daemon/model/drive_tick.h"

namespace ssdpulse::analysis {

using model::BlockWrites;

/// Both sides at one reading of the host's counter. The block layer's, just before and just after it.
struct HostPoint {
  CountRange host;
  CounterFormat format;
  BlockWrites before;
  BlockWrites after;
  std::optional<std::uint64_t> largest_request_bytes;  // of those that are lost or in flight
};

class HostDrift {
 public:
  /// `prompt`: the counter follows every poll. The counter's format stays the same until forget_begin().
  void observe(const HostPoint& point, bool prompt);

  /// The drift is that since the next point.
  void forget_begin() { begin_.reset(), now_.reset(); }

  struct Drift {
    double likely;
    double lower;
    double upper;
  };
  /// The growth of the drive's counter less that of ours: absent before the first point, and where requests were lost
  /// of unknown sizes.
  [[nodiscard]] std::optional<Drift> drift() const;

 private:
  enum class Counts : std::uint8_t { unknown, yes, no, sometimes };
  static constexpr std::array<std::uint64_t BlockWrites::*, 2> kErasing{&BlockWrites::zeroed_bytes,
                                                                        &BlockWrites::discarded_bytes};

  struct Growth;
  [[nodiscard]] static std::optional<Growth> growth(const HostPoint& from, const HostPoint& to);
  [[nodiscard]] Interval counted(std::size_t command, Interval bytes) const;
  void learn(const HostPoint& from, const HostPoint& to);

  std::array<Counts, kErasing.size()> counts_{};
  std::optional<HostPoint> begin_;
  std::optional<HostPoint> now_;
};

}  // namespace ssdpulse::analysis
