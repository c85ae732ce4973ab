// SPDX-License-Identifier: Apache-2.0
#include "exporters/terminal/device_list.h"

#include <string_view>

#include "daemon/model/operation.h"
#include "daemon/model/snapshot.h"
#include "exporters/terminal/table.h"

namespace ssdpulse::terminal {
namespace {

std::string state_of(const model::Device& device) {
  return device.coverage == model::Coverage::measured && !device.has_requests
             ? "not measured: " + std::string(model::unseen_text(false))
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
  std::vector<std::vector<std::string>> rows{{"DEVICE", "SIZE", "TRANSPORT", "MODEL", "SERIAL", "QUEUES", "STATE"}};
  for (const model::Device& device : inventory.devices) {
    const std::string queues = device.paths.empty() ? "-"
                                                    : std::to_string(device.paths[0].hardware_queues) + "x" +
                                                          std::to_string(device.paths[0].queue_depth);
    rows.push_back({device.name, human_size(device.size_bytes), device.transport, util::for_terminal(device.model),
                    util::for_terminal(device.serial), queues, state_of(device)});
  }
  print_table(rows, out);
  for (const model::IdentityClash& clash : reported_clashes(inventory)) {
    out << '\n' << util::for_terminal(model::clash_text(clash), util::kLongestSentence) << '\n';
  }
}

/// People tag their writes for years without knowing that no hint arrives.
void print_hint_paths(const std::vector<HintLine>& lines, std::ostream& out) {
  std::vector<std::vector<std::string>> rows{{"DEVICE", "WRITE HINTS", "THE DRIVE"}};
  for (const HintLine& line : lines) {
    rows.push_back({line.device, std::string(name(line.path.kernel, model::kHintReachWords)),
                    std::string(name(line.path.drive, model::kDriveSeparationWords))});
  }
  if (rows.size() > 1) {
    out << '\n';
    print_table(rows, out);
  }
}

void print_io_accounting(model::IoAccounting accounting, std::ostream& out) {
  if (accounting == model::IoAccounting::root_only) {
    out << "\ntenants: this host accounts all I/O to the root of its cgroups, so that tenants cannot be told apart; "
           "with "
           "systemd, set\nDefaultIOAccounting=yes in a file of /etc/systemd/system.conf.d, and run systemctl "
           "daemon-reexec\n";
  }
}

}  // namespace ssdpulse::terminal
