// SPDX-License-Identifier: Apache-2.0
#include "daemon/history/device_minutes.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "daemon/model/device_interval.h"

namespace ssdpulse::history {
namespace {

/// What the tenant stage reported a second ago; null if it reported nothing about this device.
std::shared_ptr<const model::DeviceTenants> tenants_of(const model::Tick& tick, const model::DeviceTick& device) {
  if (!tick.before) {
    return nullptr;
  }
  for (const model::DeviceSnapshot& seen : tick.before->devices) {
    if (seen.device->name == device.block.device->name && seen.io && seen.io->since == device.block.io->since) {
      return seen.tenants;
    }
  }
  return nullptr;
}

/// Whether the device does I/O of which no request is seen, as of a second ago.
bool is_unseen(const model::Tick& tick, const model::DeviceTick& device) {
  const model::Device& now = *device.block.device;
  return !now.has_requests ||
         (tick.before && std::any_of(tick.before->devices.begin(), tick.before->devices.end(),
                                     [&](const auto& one) { return one.device->name == now.name && one.unseen; }));
}

void add(model::TotalsByOperation& sum, const model::TotalsByOperation& more) {
  for (std::size_t operation = 0; operation < sum.size(); ++operation) {
    sum[operation] += more[operation];
  }
}

void subtract(model::TotalsByOperation& sum, const model::TotalsByOperation& less) {
  for (std::size_t operation = 0; operation < sum.size(); ++operation) {
    sum[operation] -= less[operation];
  }
}

/// What each tenant did in between. If a tenant's series ended meanwhile, it is in the rest, without what it had done
/// before: the sum over all is exact.
std::vector<model::TenantLoad> tenants_between(const model::DeviceTenants& before, const model::DeviceTenants& after) {
  std::vector<model::TenantLoad> loads;
  model::TotalsByOperation rest = after.other;
  add(rest, after.departed);
  subtract(rest, before.other);
  subtract(rest, before.departed);
  for (const model::TenantIo& one : after.tenants) {
    loads.push_back({one.tenant.name, one.totals});
  }
  for (const model::TenantIo& was : before.tenants) {
    const auto still = std::find_if(after.tenants.begin(), after.tenants.end(), [&](const model::TenantIo& one) {
      return one.tenant.name == was.tenant.name && one.since == was.since;
    });
    subtract(
        still == after.tenants.end() ? rest : loads[static_cast<std::size_t>(still - after.tenants.begin())].totals,
        was.totals);
  }
  loads.push_back({std::string(model::kOtherTenants), rest});
  std::erase_if(loads, [](const model::TenantLoad& load) { return load.totals == model::TotalsByOperation{}; });
  return model::heaviest(std::move(loads));
}

}  // namespace

model::Findings DeviceMinutes::observe(const model::Tick& tick) {
  model::Findings findings;
  model::Batch& rows = findings.effects.rows;
  const auto minute = std::chrono::floor<std::chrono::minutes>(tick.wall);
  const auto before = std::exchange(minute_, minute).value_or(minute);
  take(tick, before, rows);
  if (before != minute || tick.last) {
    for (auto& [name, known] : counted_) {
      end(known, before, rows);
      known.begin = known.last;
      known.begin_at = known.last_at;
      known.begin_tenants = known.last_tenants;
    }
  }
  return findings;
}

/// Takes what is there now. A device that is gone, or replaced by another one of that name, gets its last row.
void DeviceMinutes::take(const model::Tick& tick, model::Minute minute, model::Batch& rows) {
  std::map<std::string, Counted> before = std::exchange(counted_, {});
  for (const model::DeviceTick& device : tick.devices) {
    const auto io = is_unseen(tick, device) ? nullptr : device.block.io;
    auto old = before.extract(device.block.device->name);
    if (!io) {  // not read this time: what it did before must not count again
      if (!old.empty()) {
        counted_.insert(std::move(old));
      }
      continue;
    }
    if (!old.empty() && old.mapped().last->since != io->since) {
      end(old.mapped(), minute, rows);
      old = {};
    }
    Counted known{*device.history_key, nullptr, {}, io, tick.at};
    if (old.empty()) {
      const auto age = std::clamp<model::WallTime::duration>(tick.wall - io->since, {}, std::chrono::minutes(1));
      known.begin_at = tick.at - age;
    } else {
      known.begin = std::move(old.mapped().begin);
      known.begin_at = old.mapped().begin_at;
      known.begin_tenants = std::move(old.mapped().begin_tenants);
    }
    known.last_tenants = tenants_of(tick, device);
    counted_.emplace(device.block.device->name, std::move(known));
  }
  for (const auto& [name, gone] : before) {
    end(gone, minute, rows);
  }
}

void DeviceMinutes::end(const Counted& known, model::Minute minute, model::Batch& rows) const {
  static const auto& nothing = *new model::DeviceIo;
  const auto measured = std::chrono::round<std::chrono::milliseconds>(known.last_at - known.begin_at);
  auto interval = model::between(known.begin ? *known.begin : nothing, *known.last, measured);
  if (!interval || (measured.count() <= 0 && known.begin)) {
    return;
  }
  rows.device_minutes.push_back({known.key, minute, model::kept(std::move(*interval))});
  if (known.last_tenants && known.last_tenants->named) {
    static const auto& nobody = *new model::DeviceTenants;
    rows.device_minutes.back().tenants =
        tenants_between(known.begin_tenants ? *known.begin_tenants : nobody, *known.last_tenants);
  }
}

}  // namespace ssdpulse::history
