// SPDX-License-Identifier: Apache-2.0
// HostWaits: what holds up I/O above the drives, by what the kernel says each second. A cause is claimed only with a
// proof of its own (causes.md lists them), and `pressure` only for waiting that nothing else explains.
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
  static constexpr std::chrono::seconds kWindow{3};            // that rates and shares are taken over
  static constexpr std::chrono::milliseconds kConfirmed{900};  // a proof must hold as long: two seconds in a row
  static constexpr std::chrono::seconds kEnds{4};              // without proof
  static constexpr double kPressure = 0.3;                     // share of the time in which somebody waits
  static constexpr double kAtLimit = 0.95;                     // of the limit
  static constexpr double kUnexplained = 0.5;                  // share of the time, beyond what is usual here
  static constexpr std::chrono::hours kNowUsual{1};       // an unexplained wait that lasts longer is usual from then on
  static constexpr double kBeyondLimit = 1.5;             // times a limit: then the count is of something else
  static constexpr std::chrono::minutes kUsual{10};       // over which that is learned
  static constexpr std::uint64_t kLearning = 60;          // calls before anything is unexplained
  static constexpr std::uint64_t kNoRoomBytes = 1 << 20;  // or a hundredth of a small file system: larger writes fail

  struct Second {
    model::SteadyTime at;
    std::chrono::system_clock::time_point wall;
    const model::HostSignals* signals = nullptr;  // required
    /// Share of the time since the last call in which I/O was in flight on measured drives, or more.
    double in_flight_ratio = 0;
    std::set<std::string> slow_devices = {};  // of incidents that go on
  };

  /// What goes on, and what has ended since the last call.
  std::vector<model::HostWait> observe(const Second& second);

 private:
  using Key = std::pair<model::HostWaitCause, util::OutsideText>;  // and subject with the device
  struct Reading {
    model::SteadyTime at;
    std::optional<model::IoPressure> pressure;
    std::optional<double> blocked;                // without it: 1 if any task waited at that moment
    double in_flight_seconds = 0;                 // cumulative
    std::map<std::string, std::uint64_t> limits;  // counted against each, by its key
    std::map<std::string, double> limit_seconds;  // in which tasks below it waited, likewise
  };
  struct Open {
    model::SteadyTime first;  // that it held
    model::SteadyTime last;
    bool claimed = false;
    model::HostWait wait;
  };
  using Found = std::map<Key, model::HostWait>;

  void find_pressure(const Second& second);
  void find_suspended(const Second& second, Found& found);
  void find_frozen(const Second& second, Found& found) const;
  void find_full(const Second& second, Found& found);
  void find_limits(const Second& second, Found& found) const;
  void find_dirty(const Second& second, Found& found) const;
  void find_unexplained(const Second& second, Found& found);

  std::deque<Reading> readings_;    // over kWindow and one more
  std::optional<double> pressure_;  // without the kernel's, the share of moments in which a task waited
  bool has_pressure_ = false;
  std::optional<double> unexplained_;  // share of the time in which tasks waited and nothing was in flight, at least
  double usual_unexplained_ = 0;
  std::uint64_t learned_ = 0;                                       // calls that it rests on
  std::set<std::string> in_use_;                                    // volumes that were seen not suspended
  std::set<std::pair<util::OutsideText, std::uint64_t>> had_room_;  // file systems
  double in_flight_seconds_ = 0;
  std::optional<model::SteadyTime> before_;
  std::map<Key, Open> open_;
};

}  // namespace ssdpulse::analysis
