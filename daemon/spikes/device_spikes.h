// SPDX-License-Identifier: Apache-2.0
// DeviceSpikes: the latency spikes of one device, and their causes, found from what its I/Os, its tenants and its drive
// did in each tick. UsualWait, UsualTenants and UsualSenders learn what is usual outside spikes; SpikeTenants names the
// tenants that did more than usual in a spike, and those that it slowed.
//
// Usual values are averages over about the last two minutes. All are pure: ticks are their only input. Memory is
// bounded by the number of tenants at a time.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "daemon/model/incident.h"
#include "daemon/model/latency_spike.h"
#include "daemon/model/tenant_io.h"
#include "daemon/spikes/drive_readings.h"
#include "daemon/spikes/io_window.h"
#include "daemon/spikes/spike_causes.h"
#include "daemon/spikes/spike_detector.h"
#include "daemon/tenants/tenant_steps.h"

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

/// What tenants did in a window, by name.
using TenantWork = std::map<std::string, tenants::TenantDone>;

/// What each tenant does when nothing is wrong.
class UsualTenants {
 public:
  static constexpr double kSeconds = 120;  // time constant
  static constexpr std::size_t kMaxTenants = 2048;

  /// Per second.
  struct Rates {
    double bytes = 0;  // read and written
    double commits = 0;
    double writes = 0;
  };

  /// Learns from a window outside spikes of this operation. `seconds`: its length.
  void learn(const TenantWork& work, model::Operation operation, double seconds);

  /// Seconds per I/O; absent until one has been seen.
  [[nodiscard]] std::optional<double> seconds(const std::string& tenant, model::Operation operation) const;
  /// 0 for a tenant that was not seen.
  [[nodiscard]] Rates rates(const std::string& tenant) const;

 private:
  struct Mean {
    double ios = 0;
    double bytes = 0;
    double commits = 0;
    double device_seconds = 0;
  };
  std::map<std::string, model::ByOperation<Mean, model::kAttributedOperations>> tenants_;
  model::ByOperation<double, model::kAttributedOperations> learned_seconds_{};
};

/// Heaviest: the tenants whose bytes exceed their own usual bytes the most: of reads and writes, or of discards if
/// discards are the cause. Committers: the same by flushes and FUA writes; where the root leads, whose commits are
/// those of a file system's journal, the tenant that exceeds its usual number of writes the most is listed before it.
/// Nobody is listed in either where the first tenant has no real part in the excess.
///
/// Slowed: in a spike of reads (or writes), the tenants whose reads (writes) took the most device time in total beyond
/// the usual mean of the same tenant; a tenant that was not seen before the spike has no usual mean, and is not listed.
/// In a spike of commits or flushes, the excess is shared out by the number of commits. The commits of a file system's
/// journal belong to the root: they are counted for the one tenant that does nearly all of the other writes, if any.
class SpikeTenants {
 public:
  /// `usual`: from before the spike.
  explicit SpikeTenants(UsualTenants usual) : usual_(std::move(usual)) {}

  void add(const TenantWork& work, double seconds);
  /// Fills in heaviest, committers, slowed and active_tenants, by the spike's operation, cause and excess.
  void describe(model::LatencySpike& spike) const;

 private:
  [[nodiscard]] std::map<std::string, double> waits(const model::LatencySpike& spike) const;
  [[nodiscard]] std::optional<std::string> only_writer() const;

  UsualTenants usual_;
  TenantWork done_;
  double seconds_ = 0;
};

/// The operation whose device times show which tenants a spike of this operation slows.
model::Operation attributed_operation(model::Operation operation);

/// Who sends a device its reads and writes when nothing is wrong, and how much of each. Distinguishes load that other
/// tenants bring from load of those that wait for the I/Os. Learns windows in which nothing was slow; the caller makes
/// sure of that.
class UsualSenders {
 public:
  static constexpr double kSeconds = 120;    // time constant
  static constexpr double kMinShare = 0.05;  // of the operation's I/Os: with less, a tenant is not one of its senders
  static constexpr std::size_t kMaxTenants = 2048;

  void learn(const TenantWork& work, double seconds);

  /// Reads or writes, whichever is higher, of those who usually send this operation, relative to what they usually
  /// send: in I/Os or in bytes. Absent if it is not known who sends most of its `usual_rate` I/Os per second. `work`:
  /// of some windows, `seconds` in all.
  [[nodiscard]] std::optional<double> load(model::Operation operation, double usual_rate,
                                           std::span<const TenantWork* const> work, double seconds) const;

 private:
  struct Rate {
    double ios = 0;  // per second, as bytes
    double bytes = 0;
  };
  using Rates = std::array<Rate, 2>;  // reads, writes

  double weight_ = 0;
  std::map<std::string, Rates> tenants_;
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
  std::vector<model::LatencySpike> observe(const SpikeTick& tick);

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

  void take_window(const IoWindow& window, const SpikeTick& tick);
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
