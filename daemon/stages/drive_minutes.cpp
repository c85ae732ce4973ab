// SPDX-License-Identifier: Apache-2.0
#include "daemon/stages/drive_minutes.h"

#include <algorithm>
#include <utility>

namespace ssdpulse::stages {
namespace {

std::optional<double> quantile_between(const model::LatencyWords& before, const model::LatencyWords& after,
                                       double share) {
  const auto words = model::added(before, after);
  return words && model::count(*words) > 0
             ? std::optional(model::upper_bound_seconds(model::quantile_word(*words, share)))
             : std::nullopt;
}

}  // namespace

DriveIo io_of(const model::DriveTick& drive, const Tick& tick) {
  using model::Operation;
  DriveIo sum;
  for (const DeviceTick& device : tick.devices) {
    if (const auto& io = device.block.io; io && device.drive == drive.drive) {
      model::add(sum.reads, model::device_time_words(*io, {Operation::read}));
      model::add(sum.writes, model::device_time_words(*io, {Operation::write}));
      sum.discarded_bytes += io->operation(Operation::discard).bytes;
    }
  }
  return sum;
}

history::DriveMinute DriveMinutes::end(history::Minute minute, const DriveIo& now) {
  const DriveIo begin = std::exchange(begin_, now);
  history::DriveMinute row;
  row.minute = minute;
  row.read_p50_seconds = quantile_between(begin.reads, now.reads, 0.5);
  row.read_p99_seconds = quantile_between(begin.reads, now.reads, 0.99);
  row.write_p50_seconds = quantile_between(begin.writes, now.writes, 0.5);
  row.write_p99_seconds = quantile_between(begin.writes, now.writes, 0.99);
  row.discard_bytes = now.discarded_bytes - std::min(begin.discarded_bytes, now.discarded_bytes);
  return row;
}

}  // namespace ssdpulse::stages
