// SPDX-License-Identifier: Apache-2.0
#include "daemon/runtime/device_report.h"

#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/analysis/write_amplification/source_choice.h"
#include "daemon/analysis/write_hint_path.h"
#include "daemon/drives/poll_once.h"
#include "daemon/sources/block/kernel_btf.h"
#include "daemon/sources/cgroups/cgroup_hierarchy.h"
#include "daemon/sources/inventory/inventory.h"
#include "exporters/terminal/device_json.h"
#include "exporters/terminal/device_list.h"
#include "exporters/terminal/drive_list.h"

namespace ssdpulse::runtime {
namespace {

/// Of the drives that answered, by device.
using Identities = std::map<std::string, std::shared_ptr<const model::NvmeIdentity>>;

std::vector<std::string> pages_of(const nvme::DriveReading& reading) {
  std::vector<std::string> names;
  for (const nvme::PageReading& entry : reading.pages) {
    if (names.empty() || names.back() != entry.page->name) {
      names.emplace_back(entry.page->name);
    }
  }
  return names;
}

terminal::DriveLine line_of(const drives::DriveAnswer& answer) {
  terminal::DriveLine line;
  line.controller = "nvme" + std::to_string(answer.subsystem.controller);
  line.firmware = answer.subsystem.firmware;
  for (const model::NvmeNamespace& entry : answer.subsystem.namespaces) {
    line.namespaces.push_back(entry.device);
  }
  if (!answer.reading) {
    line.failure = answer.failure;
  } else {
    const analysis::SourceChoice choice = analysis::choose_source(*answer.reading);
    line.log_pages = pages_of(*answer.reading);
    line.source = choice.source;
    line.reason = choice.reason;
  }
  return line;
}

/// What the host reported, once.
struct HostReport {
  model::Inventory inventory;
  terminal::DriveList drives;
  std::vector<terminal::HintLine> hints;
  std::string no_hints;  // why there are none; empty if there are some
};

Identities read_drives(terminal::DriveList& list) {
  const auto answers = drives::poll_once();
  if (!answers) {
    list.failure = answers.error().message;
    return {};
  }
  Identities identities;
  for (const drives::DriveAnswer& answer : *answers) {
    list.lines.push_back(line_of(answer));
    if (answer.reading) {
      for (const model::NvmeNamespace& entry : answer.subsystem.namespaces) {
        identities[entry.device] = answer.reading->identity;
      }
    }
  }
  return identities;
}

void add_hint_paths(const Identities& drives, HostReport& report) {
  const auto btf = block::read_kernel_btf();
  if (!btf) {
    report.no_hints = btf.error().message;
    return;
  }
  for (const model::Device& device : report.inventory.devices) {
    if (device.coverage == model::Coverage::measured) {
      const auto drive = drives.find(device.name);
      const model::NvmeIdentity* identity = drive == drives.end() ? nullptr : drive->second.get();
      report.hints.push_back({device.name, analysis::write_hint_path(btf->hint_reach, device, identity)});
    }
  }
}

util::Result<HostReport> read_report(const config::Config& config) {
  auto inventory = inventory::read_inventory({}, {config.devices.include, config.devices.exclude});
  if (!inventory) {
    return tl::make_unexpected(inventory.error());
  }
  HostReport result;
  result.inventory = std::move(*inventory);
  // A loop device with nothing attached is only a number, not a disk; a host has eight of them from the start.
  auto& devices = result.inventory.devices;
  devices.erase(
      std::remove_if(devices.begin(), devices.end(),
                     [](const model::Device& device) { return device.transport == "loop" && device.size_bytes == 0; }),
      devices.end());
  add_hint_paths(read_drives(result.drives), result);
  return result;
}

void print_text(const HostReport& report, std::ostream& out) {
  terminal::print_devices(report.inventory, out);
  if (report.drives.failure.empty()) {
    terminal::print_drives(report.drives.lines, out);
  } else {
    out << "\nNVMe drives: " << report.drives.failure << '\n';
  }
  if (report.no_hints.empty()) {
    terminal::print_hint_paths(report.hints, out);
  } else {
    out << "\nwrite hints: " << report.no_hints << '\n';
  }
  if (const auto hierarchy = cgroups::find_hierarchy("/proc")) {
    terminal::print_io_accounting(cgroups::accounting_of(*hierarchy), out);
  }
}

}  // namespace

util::ExitCode report_devices(const config::Config& config, ReportForm form, std::ostream& out) {
  const auto found = read_report(config);
  if (!found) {
    (form == ReportForm::json ? std::cerr : out) << found.error().message << '\n';
    return util::ExitCode::failure;
  }
  if (form == ReportForm::json) {
    out << terminal::devices_json(found->inventory, found->drives, found->hints);
  } else {
    print_text(*found, out);
  }
  return util::ExitCode::success;
}

}  // namespace ssdpulse::runtime
