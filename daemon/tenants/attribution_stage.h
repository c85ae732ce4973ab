// SPDX-License-Identifier: Apache-2.0
// TenantSlots, Attribution: the I/O of each tenant of a device, in a bounded number of series. Not thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>

#include "daemon/model/clock.h"
#include "daemon/model/stage.h"
#include "daemon/model/tenant_steps.h"

namespace ssdpulse::tenants {

/// The tenants of one device that have series of their own, and what they did since they got them.
///
/// The number of slots is limited. A tenant gets one with its first I/O, if one is free; what it does without one
/// counts as `other`. A tenant whose cgroups are all gone keeps its slot for a while, so that a service that restarts
/// continues where it was and the last seconds of a container are still seen; then its series end, and its totals move
/// to `departed`. It is gone as soon as its directories are, seconds before its cells are freed. If a newcomer finds no
/// slot, it gets that of the tenant that has been gone for longest, or else idle for longest, if that is long enough.
/// No total ever moves to a tenant or to `other`: both count what happens from then on, so that their rates show what
/// really happened.
class TenantSlots {
 public:
  static constexpr std::chrono::minutes kGoneKept{5};       // several times the usual scrape interval
  static constexpr std::chrono::minutes kIdleReplaced{10};  // a newcomer gets the slot

  /// `since`: when the step began.
  void observe(const model::TenantStep& step, model::SteadyTime at, model::WallTime since, std::size_t max_slots);

  /// Everything except the paths.
  [[nodiscard]] model::DeviceTenants value() const;

 private:
  struct Slot {
    model::Tenant who;
    model::TenantDone done;
    model::WallTime since;
    model::SteadyTime last_io;
    std::optional<model::SteadyTime> gone_since = {};
  };
  using Slots = std::map<std::string, Slot>;

  void remove_gone(const model::TenantStep& step, model::SteadyTime at);
  Slots::iterator longest_idle();
  bool make_room(model::SteadyTime at);
  void depart(Slots::iterator slot);

  Slots slots_;
  model::TenantDone other_;
  model::TenantDone departed_;
};

/// The stage that turns the I/O that the kernel side counts by cgroup into the I/O of each tenant, in a bounded number
/// of series.
class Attribution final : public model::Stage {
 public:
  model::Findings observe(const model::Tick& tick) override;

 private:
  struct Device {
    model::TenantSteps steps;
    TenantSlots slots;
    std::optional<model::WallTime> last_seen;
  };
  void check_accounting(const model::Tick& tick, model::Effects& effects);

  model::PerDevice<Device> devices_;
  std::optional<model::IoAccounting> accounting_;
};

}  // namespace ssdpulse::tenants
