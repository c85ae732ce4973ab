// SPDX-License-Identifier: Apache-2.0
// DeviceSpikes: the latency spikes of one device, and their causes.
// Joins windows, detectors, tallies and the drive's log pages, tick by tick. A spike's cause is final when the host's
// numbers decide it, or when log pages were read after its end; until then it waits, and others may follow. Pure: it
// only sees what a tick saw.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/analysis/latency_spikes/drive_readings.h"
#include "daemon/analysis/latency_spikes/io_window.h"
#include "daemon/analysis/latency_spikes/spike_causes.h"
#include "daemon/analysis/latency_spikes/spike_detector.h"
#include "daemon/analysis/latency_spikes/spike_tally.h"
#include "daemon/analysis/latency_spikes/spike_tenants.h"
#include "daemon/analysis/latency_spikes/usual_load.h"
#include "daemon/analysis/latency_spikes/usual_wait.h"

namespace ssdpulse::analysis {

/// What one tick saw of a device.
struct SpikeTick {
  SteadyTime at;
  model::WallTime wall;
  std::shared_ptr<const model::DeviceIo> io;  // null: nothing measured yet
  const model::NvmeDrive* drive = nullptr;    // null: no NVMe drive
  std::optional<model::KernelInFlight> kernel_in_flight = {};
  double floor_seconds = 0.002;
  TenantWork tenants = {};  // since the tick before
};

/// Another device that takes the name of this one has an object of its own.
class DeviceSpikes {
 public:
  static constexpr double kWaitForLogsSeconds = 90;  // a drive that is not read in this time is not heard
  static constexpr std::size_t kMostWaiting = 16;   // spikes that wait for logs; beyond it the oldest is judged at once
  static constexpr double kCommitPoolSeconds = 20;  // commits and flushes are few, and each of them is waited for
  static constexpr double kUnseenSeconds = 600;     // completions were missed that lately
  using Figures = std::array<model::SpikeFigures, model::kSpikeOperations>;

  explicit DeviceSpikes(std::string device) : device_(std::move(device)) {}

  /// The spikes whose cause became final.
  std::vector<model::LatencySpike> observe(const SpikeTick& tick);

  [[nodiscard]] const Figures& figures() const { return figures_; }
  /// Those that last, with what is known so far; their cause and numbers may change.
  [[nodiscard]] std::vector<model::LatencySpike> going_on() const;
  /// Those that are over and wait for the drive's log pages; their cause may change.
  [[nodiscard]] std::vector<model::LatencySpike> unjudged() const;
  /// The drive's log pages would show more, if they were read now.
  [[nodiscard]] bool wants_logs() const { return wants_logs_; }

 private:
  static constexpr std::size_t kRecent = 7;  // windows that may turn out to belong to a spike

  struct Waiting {
    model::SpikeOperation operation;
    SpikeSpan span;
    model::WallTime begin;
    SpikeTally tally;
    UsualLoad usual;  // of before
    std::optional<double> usual_wait;
    SpikeTenants tenants;
    double excess_seconds = 0;
  };
  struct Channel {
    explicit Channel(double pool_seconds) : detector(pool_seconds) {}
    SpikeDetector detector;
    UsualWait usual_wait;
    std::optional<Waiting> open;
  };
  struct Recent {
    IoWindow window;
    double floor_seconds = 0;
    TenantWork tenants;
    std::array<bool, model::kSpikeOperations> in_spike{};
  };

  void take_window(const IoWindow& window, const SpikeTick& tick);
  [[nodiscard]] Surroundings surroundings(const IoWindow& window, model::SpikeOperation operation,
                                          const SpikeTick& tick) const;
  [[nodiscard]] double load(model::SpikeOperation operation) const;
  void open(Channel& channel, model::SpikeOperation operation, const SpikeTick& tick);
  static void claim(Recent& recent, Waiting& spike);
  void forget(const Recent& oldest);
  [[nodiscard]] bool any_open() const;
  [[nodiscard]] CauseVerdict judge(const Waiting& spike, SteadyTime ended) const;
  void add_pending(const Waiting& spike);
  std::vector<model::LatencySpike> finish(SteadyTime now);
  model::LatencySpike close(const Waiting& spike, CauseVerdict verdict);
  [[nodiscard]] model::LatencySpike describe(const Waiting& spike, CauseVerdict verdict) const;

  std::string device_;
  std::shared_ptr<const model::DeviceIo> last_io_;
  SteadyTime last_at_;
  std::array<Channel, model::kSpikeOperations> channels_{Channel(SpikeDetector::kPoolSeconds),
                                                         Channel(SpikeDetector::kPoolSeconds),
                                                         Channel(kCommitPoolSeconds), Channel(kCommitPoolSeconds)};
  std::deque<Recent> recent_;
  UsualLoad usual_;
  UsualTenants usual_tenants_;
  DriveReadings readings_;
  bool has_drive_ = false;
  bool drive_up_ = false;
  std::deque<Waiting> waiting_;
  SteadyTime last_spike_end_;
  std::optional<SteadyTime> missed_at_;  // completions, last
  SteadyTime now_;
  Figures figures_;
  bool wants_logs_ = false;
};

}  // namespace ssdpulse::analysis
