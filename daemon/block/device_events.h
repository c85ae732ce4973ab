// SPDX-License-Identifier: Apache-2.0
// RecentLosses, Losses, DeviceEvents: what the log says about devices: I/O that was not measured, arrivals, departures
// and errors.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "daemon/model/block_io.h"
#include "daemon/model/device.h"
#include "daemon/model/device_identity.h"
#include "daemon/model/snapshot.h"
#include "daemon/model/stage.h"

namespace ssdpulse::block {

/// Losses of I/Os whose start or end was not seen.
inline constexpr std::array kLostIos{model::Loss::completion_missed, model::Loss::stray, model::Loss::slot_collision};

/// What happened between two moments.
struct LostShare {
  std::array<std::uint64_t, kLostIos.size()> lost{};
  std::uint64_t ios = 0;  // that ended, including the lost ones
  std::chrono::duration<double> duration{};
};

/// How much of a device's I/O was not measured recently, where the counters only show the total since the start. For
/// one device: a different device that takes over its name gets its own object.
class RecentLosses {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// Call once per tick. Returns the account of a minute when it is over, if more than one I/O in a thousand was lost
  /// (the threshold of the SsdpulseLosingEvents alert) and at least ten were.
  std::optional<LostShare> observe(const model::DeviceIo& io, Time at);

 private:
  std::optional<Time> begin_;
  LostShare at_begin_;
};

/// The stage that logs when ssdpulse is losing I/Os, for people who read the log; Prometheus has the counters.
class Losses final : public model::Stage {
 public:
  model::Findings observe(const model::Tick& tick) override;

 private:
  model::PerDevice<RecentLosses> devices_;
  log::Limiter limiter_{std::chrono::minutes(10)};
};

/// The log lines that an operator looks for first: which disks appeared, are gone, have the same identity, and return
/// errors. Disks that are there at the first tick have not appeared.
class DeviceEvents final : public model::Stage {
 public:
  model::Findings observe(const model::Tick& tick) override;

 private:
  void report_clashes(const model::Tick& tick, std::vector<log::Line>& lines);

  struct State {
    std::uint64_t errors = 0;  // so far, without ignored ones
    bool seen = false;         // when it is seen again, it has not just arrived
  };

  model::PerDevice<State> devices_;
  std::map<std::string, std::shared_ptr<const model::Device>> before_;  // of the last tick
  std::shared_ptr<const model::Inventory> inventory_;                   // for the next
  std::vector<model::IdentityClash> clashes_;
  bool first_ = true;
  log::Limiter limiter_{std::chrono::minutes(10)};  // lines about errors, by device
};

}  // namespace ssdpulse::block
