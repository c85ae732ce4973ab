// SPDX-License-Identifier: Apache-2.0
// HostWaits: what holds up I/O above the drives, by what the kernel reports each second. A cause is claimed only with a
// proof of its own (deploy/docs/causes.md lists them with their limits), and `pressure` only for waiting that nothing
// else explains. Not thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "daemon/model/clock.h"
#include "daemon/model/host_signals.h"
#include "daemon/util/outside_text.h"

namespace ssdpulse::analysis {

class HostWaits {
 public:
  struct Second {
    model::SteadyTime at;
    std::chrono::system_clock::time_point wall;
    const model::HostSignals* signals = nullptr;  // required
    /// Share of the time since the last call in which I/O was in flight on the drives: an upper bound, which may
    /// exceed 1.
    double in_flight_ratio = 0;
    std::set<std::string> slow_devices = {};  // devices of incidents that go on
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
    double in_flight_seconds = 0;   // cumulative, as all that follow
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

  /// Sets the ratios of the window that ends now; the others use them to find what is proven in this second.
  void update_pressure(const Second& second);
  void find_suspended(const Second& second, Found& found);
  void find_frozen(const Second& second, Found& found) const;
  void find_full(const Second& second, Found& found);
  void find_limits(const Second& second, Found& found) const;
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

}  // namespace ssdpulse::analysis
