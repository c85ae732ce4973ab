// SPDX-License-Identifier: Apache-2.0
// By when after a full discard does a drive's own counter show that collection costs?
// Until the host has written all flash, nothing is relocated, so a drive whose media counter outruns the host's by then
// has no more flash than that, whatever its policy. It may have less: where whole blocks die, collection costs nothing
// at first. On two real drives under random writes, the cost was seen at 0.98 to 1.02 of the flash.
// Values only; not thread-safe.
#pragma once

#include <optional>

namespace ssdpulse::analysis {

class CollectionWatch {
 public:
  /// Shares of the drive: how far counters must move between two looks, and how late the first may be.
  static constexpr double kStep = 0.02;
  static constexpr double kLatest = 0.02;
  /// What the ratio must rise by, over that of the time before the drive was full once.
  static constexpr double kCost = 0.1;
  /// Drive writes after which nothing is learnt any more: nobody sells a drive with more flash than that.
  static constexpr double kMost = 1.6;

  /// Bytes, by the drive's counters; negative: nothing is watched.
  struct State {
    double host_then = -1;  // at the discard
    double media_then = 0;
    double host = 0;  // at the last step
    double media = 0;
    double free_ratio = 0;  // media over host writes before the drive was full once, at most: its overhead
    bool operator==(const State&) const = default;
  };

  CollectionWatch() = default;
  explicit CollectionWatch(const State& kept) : state_(kept) {}

  /// The drive's own, in bytes.
  struct Counters {
    double host;
    double media;
    double host_doubt = 0;  // a difference of two readings may be off by that: counters count whole units
    double media_doubt = 0;
  };

  /// At every reading of the counters. `since_discard`: what the host wrote since a full discard, as the model counts
  /// it. Once: the over-provisioning that the drive has at most. Coarse counters show it later, never too early.
  std::optional<double> look(std::optional<double> since_discard, const Counters& now, double drive_bytes);

  [[nodiscard]] const State& state() const { return state_; }

 private:
  State state_;
};

}  // namespace ssdpulse::analysis
