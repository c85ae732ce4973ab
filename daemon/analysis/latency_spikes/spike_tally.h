// SPDX-License-Identifier: Apache-2.0
// SpikeTally: where the time of a spike's slow I/Os went. All that the host itself knows about the cause, summed over
// the spike's windows. Queue or device time counts as slow beyond half the limit: two halves may make an I/O slow.
#pragma once

#include <array>
#include <cstdint>

#include "daemon/analysis/latency_spikes/io_window.h"
#include "daemon/analysis/latency_spikes/usual_load.h"

namespace ssdpulse::analysis {

class SpikeTally {
 public:
  SpikeTally(model::Operation operation, double limit) : operation_(operation), part_limit_(limit / 2) {}

  void add(const IoWindow& window, const UsualLoad& usual);

  struct DuringSums {
    std::uint64_t ios = 0;
    std::uint64_t slow_ios = 0;
    double slow_seconds = 0;
  };
  /// Discards, or flushes.
  struct Interference {
    std::uint64_t issues = 0;
    std::int64_t in_flight = 0;       // in the last window
    double busy_seconds = 0;          // their device times added up
    double contrast_seconds = 0;      // of windows in which I/Os that overlapped it were slow, and others were not
    double any_contrast_seconds = 0;  // the same with reads and writes taken together, where fewer others suffice
  };
  struct Sum {
    double seconds = 0;  // of the windows
    double stalled_seconds = 0;
    double standstill_seconds = 0;  // of the windows up to the last one in which none of the operation completed
    double longest_standstill_seconds = 0;
    double standstill_waited_seconds = 0;  // in it, by all that were in flight
    double device_standstill_seconds = 0;  // the same of all operations of the device
    double longest_device_standstill_seconds = 0;
    std::uint64_t ios = 0;
    std::uint64_t errors = 0;
    std::uint64_t failovers = 0;
    std::uint64_t requeues = 0;
    std::uint64_t other_errors = 0;  // failed writes and failovers of writes; in a spike of writes, of reads
    std::uint64_t other_requeues = 0;
    double busy_seconds = 0;
    double queue_full_seconds = 0;
    std::uint64_t all_ios = 0;  // of both operations
    std::uint64_t all_bytes = 0;
    double full_speed_seconds = 0;  // of windows with nearly the usual throughput, or more
    std::uint64_t commits = 0;
    Interference discards;
    Interference flushes;
    std::array<DuringSums, model::kDurings> device;
    double slow_total_seconds = 0;
    double slow_queue_seconds = 0;
    SparseBuckets device_buckets;
    SparseBuckets queue_buckets;
    SparseBuckets total_buckets;  // of the operation itself, with flushes meanwhile below
    SparseBuckets flush_buckets;
  };
  [[nodiscard]] const Sum& sum() const { return sum_; }
  [[nodiscard]] model::Operation operation() const { return operation_; }
  /// The operation whose queue and device times describe the spike. Commits have none, but their writes and flushes do.
  [[nodiscard]] model::Operation measured_by() const {
    return operation_ == model::Operation::commit ? model::Operation::write : operation_;
  }

 private:
  model::Operation operation_;
  double part_limit_;
  Sum sum_;
};

}  // namespace ssdpulse::analysis
