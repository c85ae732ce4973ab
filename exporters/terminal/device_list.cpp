// SPDX-License-Identifier: Apache-2.0
#include "exporters/terminal/device_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "daemon/base/complete.h"
#include "daemon/base/text_table.h"
#include "daemon/model/block_io.h"
#include "daemon/model/snapshot.h"
#include "exporters/words/shared.h"
#include "exporters/words/terminal.h"

namespace ssdpulse::terminal {
namespace {

using Json = nlohmann::ordered_json;

constexpr auto kStates = util::names<model::Coverage>({"measured", "excluded", "stacked", "empty"});

bool is_unseen(const model::Device& device) {
  return device.coverage == model::Coverage::measured && !device.has_requests;
}

std::string state_of(const model::Device& device) {
  return is_unseen(device) ? fmt::format(words::terminal::kNotMeasuredAs, model::unseen_text(false))
                           : std::string(name(device.coverage, model::kCoverageWords));
}

std::string human_size(std::uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  std::size_t unit = 0;
  auto value = static_cast<double>(bytes);
  while (value >= 1000 && unit + 1 < std::size(kUnits)) {
    value /= 1000;
    ++unit;
  }
  std::string text = std::to_string(value);
  return text.substr(0, text.find('.') + (value < 10 && unit > 0 ? 2 : 0)) + " " + kUnits[unit];
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) {
    text += (text.empty() ? "" : " ") + name;
  }
  return text;
}

Json device_json(const model::Device& device, const std::vector<HintLine>& hints,
                 const std::vector<std::string>& same_identity) {
  const bool has_queue = !device.paths.empty();
  const auto hint =
      std::find_if(hints.begin(), hints.end(), [&](const HintLine& line) { return line.device == device.name; });
  const bool has_hint = hint != hints.end();
  return {{"device", device.name},
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
          {"state", is_unseen(device) ? "unseen" : name(device.coverage, kStates)},
          {"same_identity", same_identity},
          {"write_hints", has_hint ? Json(name(hint->path.kernel, model::kHintReachNames)) : Json()},
          {"write_separation", has_hint ? Json(name(hint->path.drive, model::kDriveSeparationNames)) : Json()}};
}

model::HealthWords words_of(const VolumeHealth& health, const std::string& volume) {
  const auto found = health.find(volume);
  return found == health.end() ? model::HealthWords() : model::health_words(found->second);
}

Json stack_json(const model::Stack& stack) {
  Json places = Json::array();
  for (const model::StackPlace& place : stack.places) {
    places.push_back({{"name", place.name},
                      {"kind", name(place.kind, model::kLayerKindNames)},
                      {"floor", place.floor},
                      {"shared", place.shared},
                      {"cut", place.cut}});
  }
  return {{"mountpoint", util::for_terminal(stack.mountpoint, util::kLongestSentence)},
          {"fstype", util::for_terminal(stack.fstype)},
          {"places", std::move(places)}};
}

Json layer_json(const model::Layer& layer, const VolumeHealth& health) {
  const model::HealthWords words = words_of(health, layer.name);
  Json json{{"name", layer.name},
            {"title", util::for_terminal(layer.title)},
            {"kind", name(layer.kind, model::kLayerKindNames)},
            {"members", layer.members},
            {"health", words.text},
            {"bad", words.bad},
            {"missing_members", Json()},
            {"consistency_policy", ""}};
  if (const auto found = health.find(layer.name); found != health.end()) {
    if (found->second.missing_members) {
      json["missing_members"] = *found->second.missing_members;
    }
    json["consistency_policy"] = found->second.consistency_policy;
  }
  return json;
}

Json drive_json(const DriveLine& drive) {
  return {{"controller", drive.controller},
          {"devices", drive.namespaces},
          {"firmware", util::for_terminal(drive.firmware)},
          {"log_pages", drive.log_pages},
          {"write_amplification_source", drive.source},
          {"reason", drive.reason},
          {"failure", drive.failure.empty() ? Json() : Json(drive.failure)}};
}

}  // namespace

std::vector<model::IdentityClash> reported_clashes(const model::Inventory& inventory) {
  std::vector<const model::Device*> devices;
  for (const model::Device& device : inventory.devices) {
    if (device.coverage != model::Coverage::stacked && device.coverage != model::Coverage::empty) {
      devices.push_back(&device);
    }
  }
  return model::reported_clashes(devices, inventory.memberships);
}

void print_devices(const model::Inventory& inventory, std::ostream& out) {
  std::vector<std::vector<std::string>> rows{{words::terminal::kListDevice, words::terminal::kListSize,
                                              words::terminal::kListTransport, words::terminal::kListModel,
                                              words::terminal::kListSerial, words::terminal::kListQueues,
                                              words::terminal::kListState}};
  for (const model::Device& device : inventory.devices) {
    const std::string queues = device.paths.empty() ? "-"
                                                    : std::to_string(device.paths[0].hardware_queues) + "x" +
                                                          std::to_string(device.paths[0].queue_depth);
    rows.push_back({device.name, human_size(device.size_bytes), device.transport, util::for_terminal(device.model),
                    util::for_terminal(device.serial), queues, state_of(device)});
  }
  util::print_table(rows, out);
  for (const model::IdentityClash& clash : reported_clashes(inventory)) {
    out << '\n' << util::for_terminal(model::clash_text(clash), util::kLongestSentence) << '\n';
  }
}

void print_stacks(const model::Inventory& inventory, const VolumeHealth& health, std::ostream& out) {
  constexpr std::size_t kLongestMountpoint = 60;
  std::vector<std::vector<std::string>> rows{{words::terminal::kListStack, words::terminal::kListKind,
                                              words::terminal::kListName, words::terminal::kListHealth}};
  for (const model::Stack& stack :
       model::stacks_of(inventory.filesystems, inventory.layers, inventory.volumes).stacks) {
    rows.push_back({stack.mountpoint.empty() ? words::terminal::kNoMount
                                             : util::for_terminal(stack.mountpoint, kLongestMountpoint),
                    util::for_terminal(stack.fstype), "", ""});
    for (const model::StackPlace& place : stack.places) {
      const model::Layer* layer = model::layer_of(inventory.layers, place.name);
      std::string words = words_of(health, place.name).text;
      for (const auto& [applies, word] :
           {std::pair(place.shared, words::shared::kIsShared), std::pair(place.cut, words::shared::kMoreBelow)}) {
        words += applies ? (words.empty() ? "" : "; ") + std::string(word) : "";
      }
      rows.push_back({std::string(2 * (place.floor + 1), ' ') + place.name,
                      std::string(name(place.kind, model::kLayerKindNames)),
                      layer == nullptr ? std::string() : util::for_terminal(layer->title), std::move(words)});
    }
  }
  if (rows.size() > 1) {
    out << '\n';
    util::print_table(rows, out);
  }
}

void print_hint_paths(const std::vector<HintLine>& lines, std::ostream& out) {
  std::vector<std::vector<std::string>> rows{
      {words::terminal::kListDevice, words::terminal::kListWriteHints, words::terminal::kListTheDrive}};
  for (const HintLine& line : lines) {
    rows.push_back({line.device, std::string(name(line.path.kernel, model::kHintReachWords)),
                    std::string(name(line.path.drive, model::kDriveSeparationWords))});
  }
  if (rows.size() > 1) {
    out << '\n';
    util::print_table(rows, out);
  }
}

void print_io_accounting(model::IoAccounting accounting, std::ostream& out) {
  if (accounting == model::IoAccounting::root_only) {
    out << '\n' << words::terminal::kRootOnly << '\n';
  }
}

void print_drives(const std::vector<DriveLine>& lines, std::ostream& out) {
  if (lines.empty()) {
    return;
  }
  std::vector<std::vector<std::string>> rows{{words::terminal::kListController, words::terminal::kListNamespaces,
                                              words::terminal::kListFirmware, words::terminal::kListLogPages,
                                              words::terminal::kListWriteAmplification, words::terminal::kListWhy}};
  for (const DriveLine& line : lines) {
    std::vector<std::string> row{line.controller, joined(line.namespaces), util::for_terminal(line.firmware)};
    if (line.failure.empty()) {
      row.insert(row.end(), {joined(line.log_pages), line.source.empty() ? words::terminal::kUnknown : line.source,
                             util::for_terminal(line.reason, util::kLongestSentence)});
    } else {
      row.insert(row.end(), {"-", words::terminal::kUnknown,
                             fmt::format(words::terminal::kCannotBeRead,
                                         util::for_terminal(line.failure, util::kLongestSentence))});
    }
    rows.push_back(std::move(row));
  }
  out << '\n';
  util::print_table(rows, out);
}

std::string devices_json(const model::Inventory& inventory, const DriveList& drives, const std::vector<HintLine>& hints,
                         const VolumeHealth& health) {
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
  Json all{{"devices", std::move(devices)},
           {"drives", Json::array()},
           {"drives_failure", drives.failure.empty() ? Json() : Json(drives.failure)},
           {"stacks", Json::array()},
           {"layers", Json::array()}};
  for (const DriveLine& drive : drives.lines) {
    all["drives"].push_back(drive_json(drive));
  }
  for (const model::Stack& stack :
       model::stacks_of(inventory.filesystems, inventory.layers, inventory.volumes).stacks) {
    all["stacks"].push_back(stack_json(stack));
  }
  for (const model::Layer& layer : inventory.layers) {
    all["layers"].push_back(layer_json(layer, health));
  }
  return all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace ssdpulse::terminal
