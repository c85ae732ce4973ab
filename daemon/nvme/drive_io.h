// SPDX-License-Identifier: Apache-2.0
// BlockLayer: what the block layer reports about a device right now; DriveWrites, LogReadEffect, PollBackoff and
// LogReadWatch: what follows from it for the polls of a drive, which are less frequent where reading log pages slows
// down I/O. Owned by the thread that polls.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "daemon/model/clock.h"
#include "daemon/model/latency_buckets.h"
#include "daemon/model/snapshot.h"
#include "daemon/model/source_samples.h"
#include "daemon/nvme/nvme_identity.h"

namespace ssdpulse::nvme {

/// For callers that cannot wait for the next snapshot. Implemented by the sampler; tests have their own.
class BlockLayer {
 public:
  BlockLayer() = default;
  BlockLayer(const BlockLayer&) = delete;
  BlockLayer& operator=(const BlockLayer&) = delete;
  virtual ~BlockLayer() = default;

  /// Counted up to this moment, all zero before the first I/O; null if the device is not measured.
  virtual std::shared_ptr<const model::DeviceIo> device(const std::string& name) = 0;

  /// The largest size of one request to the device, in bytes; nothing if it is not known.
  [[nodiscard]] virtual std::optional<std::uint64_t> largest_request_bytes(const std::string& name) const = 0;

  /// Runs of our programs that the kernel has skipped so far, whatever device they were for.
  [[nodiscard]] virtual std::uint64_t skipped_runs() const = 0;
};

/// What the block layer wrote on all namespaces of a drive: totals up to one moment. Absent: not known for all
/// namespaces, or the drive has none.
struct DriveWrites {
  std::optional<model::BlockWrites> done;
  /// Differs from an earlier value if anything was done that may have written.
  std::optional<std::uint64_t> activity;
  std::optional<std::uint64_t> largest_request_bytes;
};
DriveWrites writes_of(const NvmeSubsystem& drive, BlockLayer& block);

/// Device times of reads and writes on the namespaces that are measured.
model::LatencyBuckets latency_buckets_of(const NvmeSubsystem& drive, BlockLayer& block);

using model::LatencyBuckets;
using model::SteadyTime;

/// Whether the drive's reads and writes suffer while its log pages are read. Compares the 99th percentile of the I/Os
/// that ended near such a read with that of all others. Pure: the caller says which I/Os were near.
class LogReadEffect {
 public:
  /// Beyond this many near I/Os, half of everything is forgotten: what the drive did last week says little about today.
  static constexpr std::uint64_t kMaxIos = 1'000'000;
  /// Below this many I/Os near log reads there is no result: a handful of them would decide the 99th percentile.
  static constexpr std::uint64_t kMinIos = 2000;

  void add_near(const LatencyBuckets& ios);
  /// All I/Os of the whole time, including the near ones.
  void add_all(const LatencyBuckets& ios);

  /// p99 of the near I/Os over p99 of the others, by bucket upper bounds (9 % apart). Absent until both have enough.
  [[nodiscard]] std::optional<double> ratio() const;

 private:
  void fade();

  LatencyBuckets near_;
  LatencyBuckets all_;
};

/// How much less often the drives of a model are polled because log reads slow down their I/O. After a day without such
/// an effect, they are polled more often again.
class PollBackoff {
 public:
  /// The number of intervals between two polls of a drive of this model.
  [[nodiscard]] unsigned intervals(const std::string& model) const;
  /// Log reads slowed down I/O; false if the intervals cannot grow any more.
  bool increase(const std::string& model, SteadyTime now);
  /// They did not; true if they have not for a day, and the drives are polled more often from now on.
  bool decrease(const std::string& model, SteadyTime now);

 private:
  struct Entry {
    unsigned intervals = 1;
    SteadyTime since;  // of the last change, or the last time that log reads hurt
  };
  std::map<std::string, Entry> by_model_;
};

/// Measures one drive's LogReadEffect, whose result applies to all drives of its model.
class LogReadWatch {
 public:
  /// Keeps a reference to `backoff`.
  explicit LogReadWatch(PollBackoff& backoff) : backoff_(backoff) {}

  /// `buckets`: latencies of the drive's reads and writes so far. If a spike is the reason for the poll, the I/Os near
  /// it count neither as near ones nor as others: they were slow before.
  void poll_begins(LatencyBuckets buckets, bool for_a_spike) {
    buckets_before_ = std::move(buckets);
    for_a_spike_ = for_a_spike;
  }
  /// I/Os count as near a log read until 50 ms after it: then measure() must be called.
  void poll_ended(SteadyTime now);
  [[nodiscard]] std::optional<SteadyTime> near_until() const { return near_until_; }
  void measure(const LatencyBuckets& buckets, const std::string& model, SteadyTime now);

  /// p99 of the I/Os near log reads divided by that of the others.
  [[nodiscard]] std::optional<double> ratio() const { return ratio_; }

 private:
  PollBackoff& backoff_;
  LogReadEffect effect_;
  unsigned measured_at_ = 1;       // backoff_.intervals() while effect_ was measured
  LatencyBuckets buckets_before_;  // when the poll began
  bool for_a_spike_ = false;
  LatencyBuckets buckets_counted_;  // already in the effect's total, or to be left out of it
  std::optional<SteadyTime> near_until_;
  std::optional<double> ratio_;
};

}  // namespace ssdpulse::nvme
