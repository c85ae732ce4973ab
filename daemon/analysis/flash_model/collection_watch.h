// SPDX-License-Identifier: Apache-2.0
// CollectionWatch: finds, by a drive's own counters, how soon after a full discard garbage collection costs writes.
// Until the host has written all the flash, nothing is relocated. So when a drive's media counter outruns the host's,
// it has no more flash than was written by then, whatever its policy. It may have less: if whole blocks die, collection
// costs nothing at first. On two real drives under random writes, the cost was seen at 0.98 to 1.02 of the flash.
// Values only; not thread-safe.
#pragma once

#include <optional>

namespace ssdpulse::analysis {

class CollectionWatch {
 public:
  /// Shares of the drive: how far the host's counter must move between two steps, and how much may be written between
  /// the discard and the first reading.
  static constexpr double kStep = 0.02;
  static constexpr double kLatest = 0.02;
  /// How much the ratio must rise above its value before the drive was first full.
  static constexpr double kCost = 0.1;
  /// Drive writes after which nothing more is learned: no drive on the market has more flash than that.
  static constexpr double kMaxDriveWrites = 1.6;

  /// Bytes, by the drive's counters.
  struct State {
    double host_then = -1;  // at the discard; negative: nothing is being watched
    double media_then = 0;
    double host = 0;  // at the last step
    double media = 0;
    double free_ratio = 0;  // media over host writes before the drive was first full, at most: its overhead
    bool operator==(const State&) const = default;
  };

  CollectionWatch() = default;
  explicit CollectionWatch(const State& kept) : state_(kept) {}

  /// The drive's own counters, in bytes.
  struct Counters {
    double host;
    double media;
    double host_doubt = 0;  // how far off a difference of two readings may be: counters count whole units
    double media_doubt = 0;
  };

  /// Call at every reading. `since_discard`: bytes that the host wrote since a full discard, as the model counts them;
  /// absent: there was none. Returns, once, the most over-provisioning that the drive can have, as a share of
  /// `drive_bytes`. Coarse counters show it later, never too early.
  std::optional<double> observe(std::optional<double> since_discard, const Counters& now, double drive_bytes);

  [[nodiscard]] const State& state() const { return state_; }

 private:
  State state_;
};

}  // namespace ssdpulse::analysis
