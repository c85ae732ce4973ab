// SPDX-License-Identifier: Apache-2.0
// DeviceEvidence: what the history knows about one device over the last days, as the sums that rules need. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "daemon/model/device_interval.h"
#include "daemon/model/history_answers.h"
#include "daemon/model/latency_spike.h"

namespace ssdpulse::advice {

/// What discards of one kind did.
struct TrimEvidence {
  // Of reads and writes that overlapped a discard; for `online`, any discard that is not fstrim's, whoever sent it.
  std::uint64_t ios = 0;
  /// How much longer they took in total than those of the same minutes that overlapped none. An upper bound of what the
  /// discards cost: whatever else went on at that time is included. Never negative.
  double excess_seconds = 0;
  // Of bursts with this trigger alone.
  std::uint64_t bursts = 0;
  std::uint64_t bytes = 0;
  double burst_seconds = 0;
  double longest_burst_seconds = 0;
};

struct DeviceEvidence {
  model::DeviceInterval load;  // of all minutes that were measured
  TrimEvidence fstrim;  // I/Os: of minutes in which fstrim ran, and of later minutes those that were sent while it ran
  TrimEvidence online;  // I/Os: all others
  /// How much longer than usual I/Os took, in spikes.
  model::ByOperation<std::array<double, model::kSpikeCauses>, model::kSpikeOperations> excess_seconds{};
  double spikes_observed_seconds = 0;  // less than observed_seconds() if there are more spikes than are read
  std::optional<double> media_bytes_per_day = {};
  // As far back as discards are looked for, which may be once a month, but not before a change of what trims.
  double discards_observed_seconds = 0;
  double discarded_bytes = 0;

  [[nodiscard]] double observed_seconds() const { return static_cast<double>(load.measured_ms) / 1000; }
  /// Nothing if nothing was observed.
  [[nodiscard]] std::optional<double> per_day(double amount) const;
  /// Nothing if the excess is unknown. `pending`: seconds of a spike that is not in the history yet.
  [[nodiscard]] std::optional<double> excess_per_day(model::Operation operation, model::SpikeCause cause,
                                                     double pending = 0) const;
};

/// Totals of some of a device's histograms.
struct LatencyTotal {
  double ios = 0;
  double seconds = 0;
  [[nodiscard]] std::optional<double> mean() const { return ios > 0 ? std::optional(seconds / ios) : std::nullopt; }
};
LatencyTotal latency_total(const DeviceEvidence& past, std::initializer_list<model::Latency> latencies);

/// 99th percentile of reads that overlapped a discard, or of those that did not; nothing for fewer than 3,000.
std::optional<double> read_p99_during_discards(const DeviceEvidence& past);
std::optional<double> read_p99_without_discards(const DeviceEvidence& past);

/// Adds up minutes as they are read.
class EvidenceSums {
 public:
  static constexpr std::size_t kMaxSpikes = 2000;  // that the history returns

  /// `series`: of the whole window, for its spikes, bursts and wear. `time_scale`: how much faster the recorder's clock
  /// ran than the host's; 1 except in tests.
  EvidenceSums(const model::Series& series, double time_scale);

  void add(const model::MinuteOf& minute);

  /// `series`: of a window as far back as discards are looked for. Its points should be short: one in which what trims
  /// was changed does not count.
  void add_discards(const model::Series& series);

  [[nodiscard]] DeviceEvidence take();

 private:
  struct Run {
    model::WallTime begin;  // of the first I/Os that may have overlapped it
    model::WallTime end;
  };
  /// For minutes in which too few I/Os overlapped no discard: compared with those of the whole window.
  struct Waiting {
    double ios = 0;
    double seconds = 0;
  };
  [[nodiscard]] std::optional<double> seconds_since_fstrim(const model::MinuteOf& minute) const;
  void add_waiting(bool fstrim, bool reads, const model::SparseHistogram& during, const model::SparseHistogram& others);

  double time_scale_;
  DeviceEvidence past_;
  std::vector<Run> fstrims_;
  std::optional<model::WallTime> spikes_from_;
  std::array<std::array<Waiting, 2>, 2> waiting_{};  // fstrim or online, reads or writes
};

}  // namespace ssdpulse::advice
