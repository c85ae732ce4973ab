// SPDX-License-Identifier: Apache-2.0
#include "daemon/runtime/device_list.h"

#include <string>
#include <vector>

#include "daemon/analysis/write_hint_path.h"
#include "daemon/runtime/coverage.h"
#include "daemon/runtime/drive_list.h"
#include "daemon/runtime/table.h"
#include "daemon/sources/block/kernel_btf.h"
#include "daemon/sources/inventory/inventory.h"

namespace ssdpulse::runtime {
namespace {

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

/// People tag their writes for years without knowing that nothing arrives.
void print_hint_paths(const model::Inventory& inventory, const Identities& drives, std::ostream& out) {
  const auto btf = block::read_kernel_btf();
  if (!btf) {
    out << "\nwrite hints: " << btf.error().message << '\n';
    return;
  }
  std::vector<std::vector<std::string>> rows{{"DEVICE", "WRITE HINTS", "THE DRIVE"}};
  for (const model::Device& device : inventory.devices) {
    if (device.coverage == model::Coverage::measured) {
      const auto drive = drives.find(device.name);
      const auto path =
          analysis::write_hint_path(btf->hint_reach, device, drive == drives.end() ? nullptr : drive->second.get());
      rows.push_back({device.name, analysis::in_words(path.kernel), analysis::in_words(path.drive)});
    }
  }
  if (rows.size() > 1) {
    out << '\n';
    print_table(rows, out);
  }
}

}  // namespace

ExitCode print_devices(const config::Config& config, std::ostream& out) {
  const auto inventory = sources::read_inventory({}, {config.devices.include, config.devices.exclude});
  if (!inventory) {
    out << inventory.error().message << '\n';
    return ExitCode::failure;
  }
  std::vector<std::vector<std::string>> rows{{"DEVICE", "SIZE", "TRANSPORT", "MODEL", "SERIAL", "QUEUES", "STATE"}};
  for (const model::Device& device : inventory->devices) {
    const std::string queues = device.paths.empty() ? "-"
                                                    : std::to_string(device.paths[0].hardware_queues) + "x" +
                                                          std::to_string(device.paths[0].queue_depth);
    rows.push_back({device.name, human_size(device.size_bytes), device.transport, printable(device.model),
                    printable(device.serial), queues, in_words(device.coverage)});
  }
  print_table(rows, out);
  const Identities drives = print_drives(out);
  print_hint_paths(*inventory, drives, out);
  return ExitCode::success;
}

}  // namespace ssdpulse::runtime
