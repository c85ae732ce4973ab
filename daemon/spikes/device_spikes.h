// SPDX-License-Identifier: Apache-2.0
// DeviceSpikes: the latency spikes of one device, and their causes, found from what its I/Os, its tenants and its drive
// did in each tick. UsualWait learns what is usual outside spikes: an average over about the last two minutes. Pure:
// ticks are the only input.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/model/incident.h"
#include "daemon/model/latency_spike.h"
#include "daemon/spikes/drive_readings.h"
#include "daemon/spikes/io_window.h"
#include "daemon/spikes/spike_causes.h"
#include "daemon/spikes/spike_detector.h"
#include "daemon/spikes/spike_tenants.h"

namespace ssdpulse::spikes {

/// How long I/Os of one operation usually wait: the mean total latency of the I/Os within the spike limit, over windows
/// outside spikes. In a spike, every I/O's wait beyond that counts, and a shorter wait counts against it. Outside
/// spikes, and in a spike of rare outliers, only I/Os beyond the limit count: the wait of the others is usual.
class UsualWait {
 public:
  static constexpr double kSeconds = 120;  // time constant

  /// A window outside spikes; `limit`: beyond it an I/O is slow.
  void learn(const OperationInterval& window, double seconds, double limit);

  /// Seconds per I/O. Absent until one has been seen.
  [[nodiscard]] std::optional<double> seconds() const;

 private:
  double ios_ = 0;
  double waited_ = 0;
};

/// What one tick observed of a device.
struct SpikeTick {
  SteadyTime at;
  model::WallTime wall;
  std::shared_ptr<const model::DeviceInterval> interval;  // since the tick before; null: not known
  const model::NvmeDrive* drive = nullptr;                // null: no NVMe drive
  std::optional<model::KernelInFlight> kernel_in_flight = {};
  double floor_seconds = 0.002;
  TenantWork tenants = {};  // since the previous tick
};

/// Spikes of different operations that overlap or follow within seconds are one incident and have one cause: that with
/// the strongest proof. A spike's cause is final once the incident is over and the host's own numbers decide it or log
/// pages have been read after its end. Until then the spike waits; more spikes may follow meanwhile. A different device
/// that takes over the name gets its own object.
class DeviceSpikes {
 public:
  static constexpr double kWaitForLogsSeconds = 90;  // after this time, we stop waiting for the drive's logs
  static constexpr std::size_t kMaxWaiting = 16;     // spikes waiting for logs; beyond it, the oldest is judged at once
  static constexpr double kCommitPoolSeconds = 20;   // commits and flushes are few, and something waits for each one
  static constexpr double kUnseenSeconds = 600;      // how long a missed completion counts as recent
  static constexpr double kOutlierSeconds = 5;       // for so long after the last outlier they go on
  using Figures = model::ByOperation<model::SpikeFigures, model::kSpikeOperations>;

  explicit DeviceSpikes(std::string device) : device_(std::move(device)) {}

  /// Returns the spikes whose cause became final.
  std::vector<model::LatencySpike> observe(SpikeTick tick);

  [[nodiscard]] const Figures& figures() const { return figures_; }
  /// Spikes that are still open, with what is known so far; their cause and numbers may change.
  [[nodiscard]] const std::vector<model::LatencySpike>& going_on() const { return going_on_; }
  /// Spikes that have ended and wait for the drive's log pages; their cause may change.
  [[nodiscard]] const std::vector<model::LatencySpike>& unjudged() const { return unjudged_; }
  /// Whether reading the drive's log pages now would show more.
  [[nodiscard]] bool wants_logs() const { return wants_logs_; }

 private:
  static constexpr std::size_t kMaxRecent = 7;  // windows that may turn out to belong to a spike
  static constexpr std::size_t kLoadWindows = 5;
  static constexpr double kByChance = 1.6;  // random fluctuation within one window is not a different load

  struct Waiting {
    model::Operation operation;
    SpikeSpan span;
    model::WallTime begin;
    SpikeTally tally;
    UsualLoad usual;  // from before the spike
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
    model::ByOperation<bool, model::kSpikeOperations> in_spike{};
  };

  void take_window(const IoWindow& window, SpikeTick& tick);
  [[nodiscard]] Surroundings surroundings(const IoWindow& window, model::Operation operation,
                                          const SpikeTick& tick) const;
  [[nodiscard]] double load(model::Operation operation) const;
  /// Relative to what they usually send.
  struct SendersLoad {
    double lately;    // over the last seconds, allowing for chance
    double just_now;  // over the last two windows
  };
  [[nodiscard]] std::optional<SendersLoad> senders_load(model::Operation operation) const;
  void open(Channel& channel, model::Operation operation, const SpikeTick& tick);
  static void claim(Recent& recent, Waiting& spike);
  void forget(const Recent& oldest);
  [[nodiscard]] bool any_open() const;
  /// A spike of an incident: open, waiting for its final cause, or closed already.
  struct Judged {
    SteadyTime began;
    SteadyTime ended;
    SpikeVerdict verdict;
    bool outliers = false;
    bool open = false;
    bool complete = false;  // nothing more will become known about it
    bool incident_goes_on = false;
    bool harmful = false;      // part of an incident
    Waiting* spike = nullptr;  // null: closed
    model::LatencySpike described = {};
  };
  [[nodiscard]] CauseVerdict judge(const Waiting& spike, SteadyTime ended) const;
  [[nodiscard]] Judged judge_alone(Waiting& spike, bool open, SteadyTime now);
  void unify(std::vector<Judged>& spikes) const;
  std::vector<model::LatencySpike> finish(SteadyTime now);
  void close(const Judged& spike);
  [[nodiscard]] model::LatencySpike describe(const Waiting& spike, SteadyTime ended, CauseVerdict verdict) const;

  std::string device_;
  model::ByOperation<Channel, model::kSpikeOperations> channels_{
      Channel(SpikeDetector::kPoolSeconds), Channel(SpikeDetector::kPoolSeconds), Channel(kCommitPoolSeconds),
      Channel(kCommitPoolSeconds)};
  std::deque<Recent> recent_;
  UsualLoad usual_;
  UsualTenants usual_tenants_;
  UsualSenders usual_senders_;
  DriveReadings readings_;
  bool has_drive_ = false;
  bool drive_up_ = false;
  std::deque<Waiting> waiting_;
  SteadyTime last_spike_end_;
  std::optional<SteadyTime> missed_at_;  // when completions were last missed
  SteadyTime now_;                       // of the last tick
  Figures figures_;
  bool wants_logs_ = false;
  std::vector<Judged> closed_;  // of incidents that may not be over
  std::vector<model::LatencySpike> going_on_;
  std::vector<model::LatencySpike> unjudged_;
};

}  // namespace ssdpulse::spikes
