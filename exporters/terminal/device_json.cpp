// SPDX-License-Identifier: Apache-2.0
#include "exporters/terminal/device_json.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "daemon/model/operation.h"
#include "daemon/util/complete.h"
#include "exporters/terminal/table.h"

namespace ssdpulse::terminal {
namespace {

using Json = nlohmann::ordered_json;

constexpr auto kStates = util::names<model::Coverage>({"measured", "excluded", "stacked", "empty"});  // by Coverage

Json device_json(const model::Device& device, const std::vector<HintLine>& hints,
                 const std::vector<std::string>& same_identity) {
  const bool has_queue = !device.paths.empty();
  const auto hint =
      std::find_if(hints.begin(), hints.end(), [&](const HintLine& line) { return line.device == device.name; });
  const bool has_hint = hint != hints.end();
  return {
      {"device", device.name},
      {"size_bytes", device.size_bytes},
      {"transport", device.transport},
      {"model", util::for_terminal(device.model)},
      {"serial", util::for_terminal(device.serial)},
      {"firmware", util::for_terminal(device.firmware)},
      {"wwid", util::for_terminal(device.wwid)},
      {"scheduler", device.scheduler},
      {"queues", has_queue ? Json(device.paths[0].hardware_queues) : Json()},
      {"queue_depth", has_queue ? Json(device.paths[0].queue_depth) : Json()},
      {"rotational", device.rotational},
      {"discard", device.discard},
      {"write_back_cache", device.write_back_cache},
      {"iostats", device.iostats},
      {"state", device.coverage == model::Coverage::measured && !device.has_requests ? "unseen"
                                                                                     : name(device.coverage, kStates)},
      {"same_identity", same_identity},
      {"write_hints", has_hint ? Json(name(hint->path.kernel, model::kHintReachNames)) : Json()},
      {"write_separation", has_hint ? Json(name(hint->path.drive, model::kDriveSeparationNames)) : Json()}};
}

Json drive_json(const DriveLine& drive) {
  return {{"controller", drive.controller},
          {"devices", drive.namespaces},
          {"firmware", util::for_terminal(drive.firmware)},
          {"log_pages", drive.log_pages},
          {"write_amplification_source", drive.source},
          {"reason", drive.reason},
          {"failure", drive.failure ? Json(*drive.failure) : Json()}};
}

}  // namespace

std::string devices_json(const model::Inventory& inventory, const DriveList& drives,
                         const std::vector<HintLine>& hints) {
  Json devices = Json::array();
  const auto clashes = reported_clashes(inventory);
  for (const model::Device& device : inventory.devices) {
    std::vector<std::string> others;
    for (const model::IdentityClash& clash : clashes) {
      if (std::find(clash.devices.begin(), clash.devices.end(), device.name) != clash.devices.end()) {
        std::copy_if(clash.devices.begin(), clash.devices.end(), std::back_inserter(others),
                     [&](const std::string& other) { return other != device.name; });
      }
    }
    devices.push_back(device_json(device, hints, others));
  }
  Json list = Json::array();
  for (const DriveLine& drive : drives.lines) {
    list.push_back(drive_json(drive));
  }
  const Json whole{{"devices", std::move(devices)},
                   {"drives", std::move(list)},
                   {"drives_failure", drives.failure.empty() ? Json() : Json(drives.failure)}};
  return whole.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace ssdpulse::terminal
