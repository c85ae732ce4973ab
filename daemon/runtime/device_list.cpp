// SPDX-License-Identifier: Apache-2.0
#include "daemon/runtime/device_list.h"

#include <algorithm>
#include <iomanip>
#include <string>
#include <vector>

#include "daemon/sources/inventory/inventory.h"

namespace ssdpulse::runtime {
namespace {

std::string coverage_words(model::Coverage coverage) {
  switch (coverage) {
    case model::Coverage::measured:
      return "measured";
    case model::Coverage::excluded:
      return "excluded by configuration";
    case model::Coverage::stacked:
      return "measured on the disks below it";
    case model::Coverage::empty:
      return "empty";
  }
  return "";
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

/// Serial numbers and models come from the hardware: nothing of them may reach a terminal but printable ASCII.
std::string printable(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char byte) { return byte < 0x20 || byte > 0x7e; }, '?');
  return text;
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
                    printable(device.serial), queues, coverage_words(device.coverage)});
  }
  std::vector<std::size_t> widths(rows[0].size());
  for (const auto& row : rows) {
    for (std::size_t column = 0; column < row.size(); ++column) {
      widths[column] = std::max(widths[column], row[column].size());
    }
  }
  for (const auto& row : rows) {
    for (std::size_t column = 0; column + 1 < row.size(); ++column) {
      out << std::left << std::setw(static_cast<int>(widths[column]) + 2) << (row[column].empty() ? "-" : row[column]);
    }
    out << row.back() << '\n';
  }
  return ExitCode::success;
}

}  // namespace ssdpulse::runtime
