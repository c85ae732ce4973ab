// SPDX-License-Identifier: Apache-2.0
// SpikeTally: where the time of a spike's slow I/Os went, summed over the spike's windows: all that the host itself
// knows about the cause. find_cause() scores every cause from it: the share of the slow I/Os' time that the cause
// explains, times how certain that is. The highest score names the cause; all numbers are the evidence. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "daemon/model/latency_spike.h"
#include "daemon/spikes/drive_readings.h"
#include "daemon/spikes/io_window.h"

namespace ssdpulse::spikes {

/// Queue or device time counts as slow beyond half the limit: two halves may make an I/O slow.
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
    std::uint64_t other_errors = 0;  // failed I/Os and failovers: of writes, or in a spike of writes, of reads
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
    SparseBuckets total_buckets;  // of the operation itself
    SparseBuckets flush_buckets;  // of the flushes meanwhile
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

struct CauseVerdict {
  model::SpikeCause cause = model::SpikeCause::unknown;
  double proof = 0;  // the share of the slow time that the cause explains, times how certain that is: 0 to 1
  /// Cause `flush` of a commit: most of it was its own flushes; why they were slow is not known.
  bool only_within = false;
  bool host_side = false;  // the drive's logs would not change it (except for heat, if the device is at its ceiling)
  model::SpikeEvidence evidence;
  std::vector<std::string> missing;
};

/// A cause needs this much of the excess.
inline constexpr double kMinScore = 0.3;

/// `drive`: null if its logs are not read.
CauseVerdict find_cause(const SpikeTally& tally, const UsualLoad& usual, const DriveVerdict* drive);

/// One spike of an incident, as far as it is judged by itself.
struct SpikeVerdict {
  model::Operation operation{};
  model::SpikeCause cause = model::SpikeCause::unknown;
  double proof = 0;
  bool only_within = false;
  double excess_seconds = 0;
  double load_to_baseline = 0;
  double flushes_to_baseline = 0;
};

/// The cause of an incident as a whole: the one with the strongest proof over the spikes of its operations. `unknown`
/// of one operation never outweighs the proof of another; but if reads or writes are slow for an unknown reason, then
/// that the commits' own flushes are slow, too, explains nothing.
model::SpikeCause cause_of_incident(const std::vector<SpikeVerdict>& spikes);

}  // namespace ssdpulse::spikes
