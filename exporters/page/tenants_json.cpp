// SPDX-License-Identifier: Apache-2.0
// Whose I/O is it on one device, and by which way does it come? Totals since the daemon began: rates are differences.
#include "daemon/model/device_load.h"
#include "daemon/model/tenants.h"
#include "exporters/page/json.h"

namespace ssdpulse::page {
namespace {

Json totals_json(const model::TotalsByOperation& totals) {
  Json all;
  for (std::size_t i = 0; i < model::kAttributedOperations; ++i) {
    const model::AttributedTotals& one = totals.at(i);
    all[std::string(model::kAttributedOperationNames.at(i))] = {
        {"ios", one.ios}, {"bytes", one.bytes}, {"device_seconds", static_cast<double>(one.device_ns) / 1e9}};
  }
  return all;
}

Json named(std::string name, const model::TotalsByOperation& totals) {
  Json one{{"name", text(name)}};
  one.update(totals_json(totals));
  return one;
}

}  // namespace

Json tenants_json(const model::DeviceSnapshot& device, const model::Snapshot& snapshot) {
  Json answer = head_of(snapshot);
  answer["device"] = text(device.device->name);
  answer["tenants"] = Json();
  answer["paths"] = Json();
  if (!device.tenants) {
    return answer;
  }
  const model::DeviceTenants& who = *device.tenants;
  if (who.named) {
    answer["tenants"] = Json::array();
    for (const model::TenantIo& one : who.tenants) {
      answer["tenants"].push_back(named(one.tenant.name, one.totals));
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
