// SPDX-License-Identifier: Apache-2.0
// HostDrift: how far the growth of the drive's host counter is from what the block layer wrote.
// Every drive counts writes. No standard says whether it counts the other commands that change data, write zeroes and
// discards: an FDP drive may count write zeroes that its health page leaves out. Until that is known, the bounds of the
// drift allow for either. It is learned per command, from how much the counter grew beyond the writes:
//   less than half of what was zeroed (discarded)                                         it does not count that
//   about as much as was zeroed (within a quarter), and that was more than all the rest   it does
// between two readings or since the start. An inconsistent drive (it may depend on the command's deallocate bit) stays
// unknown. Only counters that follow every poll can show this.
// The bounds do not cover what the drift is meant to show: commands that the block layer counts as none of these, such
// as passthrough, and writes by other hosts.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "daemon/model/source_samples.h"
#include "daemon/wear/counted_bytes.h"

namespace ssdpulse::wear {

using model::BlockWrites;

/// Both sides at one reading of the host's counter; the block layer's side just before and just after it.
struct HostPoint {
  CountRange host;
  CounterFormat format;
  BlockWrites before;
  BlockWrites after;
  std::optional<std::uint64_t> largest_request_bytes;  // of the requests that are lost or in flight
};

class HostDrift {
 public:
  /// `prompt`: the counter follows every poll. The counter's format stays the same until forget_begin().
  void observe(const HostPoint& point, bool prompt);

  /// From now on, the drift counts since the next point.
  void forget_begin() { begin_.reset(), now_.reset(); }

  struct Drift {
    double likely;
    double lower;
    double upper;
  };
  /// The growth of the drive's counter minus that of ours. Absent before the first point, and if requests of unknown
  /// size were lost or in flight.
  [[nodiscard]] std::optional<Drift> drift() const;

 private:
  enum class Counts : std::uint8_t { unknown, yes, no, sometimes };
  static constexpr auto kErasing =
      std::to_array<std::uint64_t BlockWrites::*>({&BlockWrites::zeroed_bytes, &BlockWrites::discarded_bytes});

  struct Growth;
  [[nodiscard]] static std::optional<Growth> growth(const HostPoint& from, const HostPoint& to);
  [[nodiscard]] Interval counted(std::size_t command, Interval bytes) const;
  void learn(const HostPoint& from, const HostPoint& to);

  std::array<Counts, kErasing.size()> counts_{};
  std::optional<HostPoint> begin_;
  std::optional<HostPoint> now_;
};

}  // namespace ssdpulse::wear
