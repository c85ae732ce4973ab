// SPDX-License-Identifier: Apache-2.0
#include "daemon/nvme/drive_io.h"

#include <algorithm>
#include <cmath>

#include "daemon/base/log.h"

namespace ssdpulse::nvme {
namespace {

using model::Operation;
using namespace std::chrono_literals;

constexpr auto kAftermath = 50ms;  // how long after a log read an I/O may suffer from it
constexpr auto kQuietPeriod = 24h;

/// A drive whose reads and writes take this much longer near log reads is polled less often.
constexpr double kMaxEffect = 2.0;
constexpr unsigned kMaxIntervals = 8;

std::uint64_t losses_of(const model::DeviceIo& io) {
  return io.losses[model::index(model::Loss::completion_missed)] + io.losses[model::index(model::Loss::stray)];
}

/// Passthrough may write, but shows neither whether nor how much.
std::uint64_t activity_of(const model::DeviceIo& io) {
  const model::OperationIo& passthrough = io.operation(Operation::passthrough);
  return io.operation(Operation::write).bytes + io.operation(Operation::write_zeroes).bytes + passthrough.issues +
         passthrough.completions + passthrough.unissued_completions;
}

void add(model::BlockWrites& sum, const model::DeviceIo& io) {
  const auto in_flight = [&](Operation operation) {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(io.operation(operation).in_flight, 0));
  };
  sum.written_bytes += io.operation(Operation::write).bytes;
  sum.zeroed_bytes += io.operation(Operation::write_zeroes).bytes;
  sum.discarded_bytes += io.operation(Operation::discard).bytes;
  sum.losses += losses_of(io);
  sum.in_flight += in_flight(Operation::write);
  sum.erasing = sum.erasing || in_flight(Operation::write_zeroes) > 0 || in_flight(Operation::discard) > 0;
}

}  // namespace

DriveWrites writes_of(const NvmeSubsystem& drive, BlockLayer& block) {
  model::BlockWrites done;
  done.losses = block.skipped_runs();
  std::uint64_t activity = done.losses;
  std::uint64_t largest = 0;
  bool measured = !drive.namespaces.empty();
  bool sizes_known = measured;
  for (const model::NvmeNamespace& entry : drive.namespaces) {
    const auto io = block.device(entry.device);
    measured = measured && io != nullptr;
    if (io) {
      add(done, *io);
      activity += activity_of(*io) + losses_of(*io);
    }
    const auto bytes = block.largest_request_bytes(entry.device);
    sizes_known = sizes_known && bytes.has_value();
    largest = std::max(largest, bytes.value_or(0));
  }
  DriveWrites sum;
  if (measured) {
    sum.done = done;
    sum.activity = activity;
  }
  if (sizes_known) {
    sum.largest_request_bytes = largest;
  }
  return sum;
}

model::LatencyBuckets latency_buckets_of(const NvmeSubsystem& drive, BlockLayer& block) {
  model::LatencyBuckets sum;
  for (const model::NvmeNamespace& entry : drive.namespaces) {
    if (const auto io = block.device(entry.device)) {
      model::add(sum, model::device_time_buckets(*io, {Operation::read, Operation::write}));
    }
  }
  return sum;
}

void LogReadEffect::add_near(const LatencyBuckets& ios) { model::add(near_, ios); }

void LogReadEffect::add_all(const LatencyBuckets& ios) {
  model::add(all_, ios);
  if (model::count(near_) > kMaxIos) {
    fade();
  }
}

std::optional<double> LogReadEffect::ratio() const {
  const auto others = model::added(near_, all_);
  if (!others || model::count(near_) < kMinIos || model::count(*others) < kMinIos) {
    return std::nullopt;
  }
  const auto buckets_apart = static_cast<double>(model::quantile_bucket(near_, 0.99)) -
                             static_cast<double>(model::quantile_bucket(*others, 0.99));
  return std::exp2(buckets_apart / 8);
}

void LogReadEffect::fade() {
  // The near I/Os stay a subset of all: both are rounded down, and near <= all in each bucket.
  for (LatencyBuckets* buckets : {&near_, &all_}) {
    for (std::uint64_t& ios : *buckets) {
      ios /= 2;
    }
  }
}

unsigned PollBackoff::intervals(const std::string& model) const {
  const auto entry = by_model_.find(model);
  return entry == by_model_.end() ? 1 : entry->second.intervals;
}

bool PollBackoff::increase(const std::string& model, SteadyTime now) {
  Entry& entry = by_model_[model];
  entry.since = now;
  const bool grows = entry.intervals < kMaxIntervals;
  entry.intervals = std::min(entry.intervals * 2, kMaxIntervals);
  return grows;
}

bool PollBackoff::decrease(const std::string& model, SteadyTime now) {
  const auto entry = by_model_.find(model);
  if (entry == by_model_.end() || now - entry->second.since < kQuietPeriod) {
    return false;
  }
  entry->second.since = now;
  entry->second.intervals /= 2;
  if (entry->second.intervals == 1) {
    by_model_.erase(entry);
  }
  return true;
}

void LogReadWatch::poll_ended(SteadyTime now) { near_until_ = now + kAftermath; }

void LogReadWatch::measure(const model::LatencyBuckets& buckets, const std::string& model, SteadyTime now) {
  near_until_.reset();
  const auto restart = [&] {
    effect_ = {};
    measured_at_ = backoff_.intervals(model);
  };
  if (measured_at_ != backoff_.intervals(model)) {
    restart();  // a drive of the same model has changed the pace
  }
  if (const auto near = model::added(buckets_before_, buckets); near && !for_a_spike_) {
    effect_.add_near(*near);
  }
  if (const auto all = model::added(buckets_counted_, for_a_spike_ ? buckets_before_ : buckets)) {
    effect_.add_all(*all);
  }
  buckets_counted_ = buckets;
  ratio_ = effect_.ratio();
  if (ratio_ && *ratio_ > kMaxEffect) {
    if (backoff_.increase(model, now)) {
      restart();
      log::warning(
          "{} reads and writes take {:.1f} times as long near log reads: polling its drives {} times less often than "
          "configured",
          log::quoted("model", model), *ratio_, backoff_.intervals(model));
    }
  } else if (backoff_.decrease(model, now)) {
    restart();
    log::info("{} was calm for a day: polling its drives {} times less often than configured",
              log::quoted("model", model), backoff_.intervals(model));
  }
}

}  // namespace ssdpulse::nvme
