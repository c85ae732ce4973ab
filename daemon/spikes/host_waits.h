// SPDX-License-Identifier: Apache-2.0
// HostWaits: what holds up I/O above the drives, by what the kernel reports each second. A cause is claimed only with a
// proof of its own (deploy/docs/causes.md lists them with their limits), and `pressure` only for waiting that nothing
// else explains. RoomTrend: how fast file systems fill. HostWaitStage: the stage that runs both and logs waits. Not
// thread-safe.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "daemon/base/outside_text.h"
#include "daemon/model/clock.h"
#include "daemon/model/host_signals.h"
#include "daemon/model/layers.h"
#include "daemon/model/stage.h"
#include "daemon/model/volume_io.h"

namespace ssdpulse::spikes {

class HostWaits {
 public:
  struct SlowLayer {
    model::SlowFloor floor;
    model::Layer layer;  // the one whose bios take the time
  };
  struct Second {
    model::SteadyTime at;
    std::chrono::system_clock::time_point wall;
    const model::HostSignals* signals = nullptr;  // required
    /// Share of the time since the last call in which I/O was in flight on the drives: an upper bound, which may
    /// exceed 1.
    double in_flight_ratio = 0;
    std::set<std::string> slow_devices = {};  // devices of incidents that go on
    std::vector<SlowLayer> slow_layers = {};
  };

  /// Call it once a second, with rising times. Returns the waits that go on, and with `over` those that have ended
  /// since the last call.
  std::vector<model::HostWait> observe(const Second& second);

 private:
  using Key = std::pair<model::HostWaitCause, util::OutsideText>;  // the text: subject, and device if there is one
  struct Reading {
    model::SteadyTime at;
    std::optional<model::IoPressure> pressure;
    std::optional<double> blocked;  // in place of the pressure: 1 if any task waited at that moment, else 0
    std::optional<double> cpu_wait_seconds;
    double in_flight_seconds = 0;  // cumulative, as all that follow
    // By key_of() the limit:
    std::map<std::string, std::uint64_t> limit_counts;  // bytes or I/Os
    std::map<std::string, double> limit_wait_seconds;   // in which tasks below it waited
  };
  struct Open {
    model::SteadyTime first;  // first proof
    model::SteadyTime last;   // newest proof
    bool claimed = false;     // proven for long enough to be reported
    model::HostWait wait;
  };
  using Found = std::map<Key, model::HostWait>;  // proven in this second
  /// Adds a wait, unless one of that cause and subject is there already. `source`: see HostWait::file.
  static model::HostWait& add(Found& found, const Second& second, model::HostWaitCause cause,
                              const util::OutsideText& subject, const char* source,
                              std::map<std::string, double> evidence = {});

  /// Sets the ratios of the window that ends now; the others use them to find what is proven in this second.
  void update_pressure(const Second& second);
  void find_suspended(const Second& second, Found& found);
  void find_frozen(const Second& second, Found& found) const;
  void find_full(const Second& second, Found& found);
  void find_limits(const Second& second, Found& found) const;
  void find_slow_layers(const Second& second, Found& found) const;
  void find_dirty(const Second& second, Found& found) const;
  void find_unexplained(const Second& second, Found& found);

  std::deque<Reading> readings_;         // of the window, and the one before it
  std::optional<double> waiting_ratio_;  // share of the time in which a task waited; absent: not known
  bool has_pressure_ = false;  // that is the kernel's pressure; else the share of readings with a waiting task
  std::optional<double> unexplained_ratio_;  // of the time, at least: tasks waited and nothing was in flight
  double usual_unexplained_ratio_ = 0;
  std::uint64_t learned_calls_ = 0;                                 // that it rests on
  std::set<std::string> in_use_;                                    // volumes that were seen not suspended
  std::set<std::pair<util::OutsideText, std::uint64_t>> had_room_;  // file systems: mount point, size in bytes
  double in_flight_seconds_ = 0;                                    // cumulative
  std::optional<model::SteadyTime> last_call_;
  std::map<Key, Open> open_;  // proven in the last seconds; claimed or not
};

/// From how much room file systems had over the last hours. A rate is reported only where the whole time and its second
/// half agree that they fill: files that come and go are no trend.
class RoomTrend {
 public:
  static constexpr std::chrono::minutes kStep{1};   // between two readings that are kept
  static constexpr std::chrono::hours kWindow{6};   // of readings
  static constexpr std::chrono::hours kMinSpan{1};  // of readings, for a rate

  /// Bytes a second by which each of these file systems fills, by mount point; those that do not are left out.
  std::map<util::OutsideText, double> observe(const std::vector<model::FilesystemRoom>& rooms, model::SteadyTime at);

 private:
  struct Reading {
    model::SteadyTime at;
    std::uint64_t available_bytes = 0;
  };
  static std::optional<double> rate_of(const std::deque<Reading>& readings, const Reading& now);

  std::map<std::pair<util::OutsideText, std::uint64_t>, std::deque<Reading>> file_systems_;  // by mount point and size
};

class HostWaitStage final : public model::Stage {
 public:
  model::Findings observe(const model::Tick& tick) override;

 private:
  /// What the I/Os of an operation took until the last tick.
  struct Operation {
    std::uint64_t busy_ns = 0;
    std::uint64_t completions = 0;
  };
  using Device = std::array<Operation, model::kOperations>;
  double in_flight_ratio(const model::Tick& tick);
  static std::vector<HostWaits::SlowLayer> slow_layers(const model::Tick& tick);
  void add_tenants(const model::Tick& tick);

  HostWaits waits_;
  RoomTrend room_trend_;
  std::map<std::string, Device> devices_;
  std::optional<model::SteadyTime> before_;
  double disks_busy_seconds_ = 0;                       // of the last tick
  std::map<util::OutsideText, double> cgroup_seconds_;  // pressure of each at the last tick
  std::map<std::string, double> tenant_seconds_;
  std::map<std::string, model::WallTime> logged_;  // that go on, by cause and subject: their begin
  std::array<std::uint64_t, model::kHostWaitCauses> count_{};
  std::array<double, model::kHostWaitCauses> seconds_{};  // of those that are over
};

}  // namespace ssdpulse::spikes
