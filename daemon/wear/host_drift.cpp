// SPDX-License-Identifier: Apache-2.0
#include "daemon/wear/host_drift.h"

namespace ssdpulse::wear {
namespace {

/// a - b
double signed_difference(Uint128 a, Uint128 b) {
  return a >= b ? static_cast<double>(a - b) : -static_cast<double>(b - a);
}

}  // namespace

/// Bytes between two points.
struct HostDrift::Growth {
  Interval drive;
  Interval written;
  std::array<Interval, kErasing.size()> erased;
};

std::optional<HostDrift::Growth> HostDrift::growth(const HostPoint& from, const HostPoint& to) {
  // Any uncounted request may have been a write, and one of the largest. So may requests in flight: the drive may have
  // counted them at the beginning (we did later), or now (we will).
  const std::uint64_t uncounted = to.after.losses - from.before.losses + to.after.in_flight;
  if (uncounted + from.after.in_flight > 0 && !to.largest_request_bytes) {
    return std::nullopt;
  }
  const auto between = [&](std::uint64_t BlockWrites::*bytes) {
    return subtract(Interval{to.before.*bytes, to.after.*bytes}, Interval{from.before.*bytes, from.after.*bytes});
  };
  const Uint128 largest = to.largest_request_bytes.value_or(0);
  Growth growth{to.format.difference(from.host, to.host), between(&BlockWrites::written_bytes), {}};
  growth.written.low = subtract(growth.written.low, multiply(from.after.in_flight, largest));
  growth.written.high = add(growth.written.high, multiply(uncounted, largest));
  for (std::size_t command = 0; command < kErasing.size(); ++command) {
    growth.erased[command] = between(kErasing[command]);
  }
  return growth;
}

/// How many of these bytes the drive's counter includes.
Interval HostDrift::counted(std::size_t command, Interval bytes) const {
  switch (counts_[command]) {
    case Counts::yes:
      return bytes;
    case Counts::no:
      return {};
    case Counts::unknown:
    case Counts::sometimes:
      break;
  }
  return {0, bytes.high};
}

void HostDrift::learn(const HostPoint& from, const HostPoint& to) {
  const auto grown = growth(from, to);
  if (!grown) {
    return;
  }
  const Interval beyond = subtract(grown->drive, grown->written);
  for (std::size_t command = 0; command < kErasing.size(); ++command) {
    const std::size_t other = 1 - command;
    const Interval bytes = grown->erased[command];
    const Interval rest = subtract(beyond, counted(other, grown->erased[other]));
    const bool dominates = bytes.low > add(grown->written.high, grown->erased[other].high);
    const auto meets = [&](Counts answer, Counts contrary) {
      counts_[command] =
          counts_[command] == contrary || counts_[command] == Counts::sometimes ? Counts::sometimes : answer;
    };
    if (bytes.low > 0 && rest.high < bytes.low / 2) {
      meets(Counts::no, Counts::yes);
    } else if (dominates && rest.low > bytes.high / 4 * 3 && rest.high < bytes.low / 4 * 5) {
      meets(Counts::yes, Counts::no);
    }
  }
}

void HostDrift::observe(const HostPoint& point, bool prompt) {
  if (point.before.erasing || point.after.erasing) {
    return;  // it is unknown how much of it the drive has counted
  }
  if (!begin_) {
    begin_ = point;
  }
  if (now_ && prompt) {
    learn(*now_, point);
    learn(*begin_, point);
  }
  now_ = point;
}

std::optional<HostDrift::Drift> HostDrift::drift() const {
  const auto grown = begin_ ? growth(*begin_, *now_) : std::nullopt;
  if (!grown) {
    return std::nullopt;
  }
  Interval ours = grown->written;
  Uint128 likely = now_->after.written_bytes - begin_->after.written_bytes;
  for (std::size_t command = 0; command < kErasing.size(); ++command) {
    ours = add(ours, counted(command, grown->erased[command]));
    likely += counts_[command] == Counts::yes ? now_->after.*kErasing[command] - begin_->after.*kErasing[command] : 0;
  }
  const Uint128 drive = now_->format.bytes(subtract(now_->host.high, begin_->host.high));
  return Drift{signed_difference(drive, likely), signed_difference(grown->drive.low, ours.high),
               signed_difference(grown->drive.high, ours.low)};
}

}  // namespace ssdpulse::wear
