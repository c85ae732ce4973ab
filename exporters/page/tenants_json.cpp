// SPDX-License-Identifier: Apache-2.0
// Whose I/O is it on one device, how does it enter the kernel, and what was declared about writes? Totals since the
// daemon started: rates are differences.
#include <array>
#include <vector>

#include "daemon/model/device_load.h"
#include "daemon/model/tenant_title.h"
#include "daemon/model/tenants.h"
#include "exporters/page/json.h"

namespace ssdpulse::page {
namespace {

Json totals_json(const model::TotalsByOperation& totals) {
  Json all;
  for (const model::Operation operation : model::kAttributedOperations) {
    const model::AttributedTotals& one = totals[operation];
    all[std::string(name(operation))] = {
        {"ios", one.ios}, {"bytes", one.bytes}, {"device_seconds", static_cast<double>(one.device_ns) / 1e9}};
  }
  return all;
}

Json named(const std::string& name, const model::TotalsByOperation& totals) {
  Json one{{"name", util::for_json(name)}};
  one.update(totals_json(totals));
  return one;
}

/// Counted only in full mode; null in completion-only mode, as nothing is known then.
Json writes_json(const model::DeviceSnapshot& device, const model::Snapshot& snapshot) {
  if (snapshot.latency_mode == "completion-only" || !device.io) {
    return {};
  }
  const model::WriteDetails& writes = device.io->writes;
  Json answer{{"hints", Json::array()}, {"classes", Json::array()}, {"streams", Json::array()}};
  for (std::size_t i = 0; i < model::kWriteHints; ++i) {
    answer["hints"].push_back({{"name", model::kWriteHintNames.at(i)},
                               {"ios", writes.hint_ios.at(i)},
                               {"bytes", writes.hint_bytes.at(i)},
                               {"device_seconds", static_cast<double>(writes.hint_latency.at(i).sum_ns) / 1e9}});
  }
  for (std::size_t i = 0; i < model::kWriteClasses; ++i) {
    answer["classes"].push_back({{"name", model::kWriteClassNames.at(i)}, {"bytes", writes.class_bytes.at(i)}});
  }
  for (const auto& [stream, bytes] : writes.stream_bytes) {
    answer["streams"].push_back({{"name", std::to_string(stream)}, {"bytes", bytes}});
  }
  return answer;
}

Json hint_path_json(const model::DeviceSnapshot& device) {
  if (!device.hint_path) {
    return {};
  }
  return {{"kernel", model::kHintReachWords.at(static_cast<std::size_t>(device.hint_path->kernel))},
          {"drive", model::kDriveSeparationWords.at(static_cast<std::size_t>(device.hint_path->drive))}};
}

/// Reclaim unit handles of flexible data placement, by their use; null if the drive does not report it.
Json handles_json(const model::NvmeDrive* drive) {
  constexpr auto kUses = std::to_array<std::string_view>({"unused", "host", "controller"});
  std::array<std::uint64_t, kUses.size()> handles{};
  bool any = false;
  for (const model::NvmeValue& value : drive != nullptr ? drive->values : std::vector<model::NvmeValue>{}) {
    for (std::size_t use = 0; use < kUses.size(); ++use) {
      if (value.field == model::NvmeField::fdp_handle_use && value.value == static_cast<double>(use)) {
        ++handles.at(use);
        any = true;
      }
    }
  }
  if (!any) {
    return {};
  }
  Json answer;
  for (std::size_t use = 0; use < kUses.size(); ++use) {
    answer[std::string(kUses.at(use))] = handles.at(use);
  }
  return answer;
}

}  // namespace

Json tenants_json(const model::DeviceSnapshot& device, const model::Snapshot& snapshot) {
  Json answer = head_of(snapshot);
  answer["device"] = util::for_json(device.device->name);
  answer["tenants"] = Json();
  answer["paths"] = Json();
  answer["writes"] = writes_json(device, snapshot);
  answer["hint_path"] = hint_path_json(device);
  answer["placement_handles"] = handles_json(drive_of(snapshot, device.device->name));
  if (!device.tenants) {
    return answer;
  }
  const model::DeviceTenants& who = *device.tenants;
  if (who.named) {
    answer["tenants"] = Json::array();
    for (const model::TenantIo& one : who.tenants) {
      answer["tenants"].push_back(named(one.tenant.name, one.totals));
      answer["tenants"].back()["title"] = util::for_json(model::tenant_title(one.tenant.name));
    }
    answer["tenants"].push_back(named(std::string(model::kOtherTenants), who.other));
  }
  answer["paths"] = Json::array();
  for (std::size_t path = 0; path < model::kIoPaths; ++path) {
    for (std::size_t access = 0; access < model::kIoAccesses; ++access) {
      const model::TotalsByOperation& totals = who.paths.at(path).at(access);
      if (totals != model::TotalsByOperation{}) {
        const std::string raw = access == model::index(model::IoAccess::raw) ? " (raw)" : "";
        answer["paths"].push_back(named(std::string(model::kIoPathNames.at(path)) + raw, totals));
      }
    }
  }
  return answer;
}

}  // namespace ssdpulse::page
