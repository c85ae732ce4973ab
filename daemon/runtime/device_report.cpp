// SPDX-License-Identifier: Apache-2.0
#include "daemon/runtime/device_report.h"

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/analysis/write_amplification/source_choice.h"
#include "daemon/analysis/write_hint_path.h"
#include "daemon/drives/one_look.h"
#include "daemon/sources/block/kernel_btf.h"
#include "daemon/sources/cgroups/cgroup_hierarchy.h"
#include "daemon/sources/inventory/inventory.h"
#include "exporters/terminal/device_list.h"
#include "exporters/terminal/drive_list.h"

namespace ssdpulse::runtime {
namespace {

/// By device, of the drives that answered.
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

Identities report_drives(std::ostream& out) {
  const auto answers = drives::look_once();
  if (!answers) {
    out << "\nNVMe drives: " << answers.error().message << '\n';
    return {};
  }
  Identities identities;
  std::vector<terminal::DriveLine> lines;
  for (const drives::DriveAnswer& answer : *answers) {
    lines.push_back(line_of(answer));
    if (answer.reading) {
      for (const model::NvmeNamespace& entry : answer.subsystem.namespaces) {
        identities[entry.device] = answer.reading->identity;
      }
    }
  }
  terminal::print_drives(lines, out);
  return identities;
}

void report_hints(const model::Inventory& inventory, const Identities& drives, std::ostream& out) {
  const auto btf = block::read_kernel_btf();
  if (!btf) {
    out << "\nwrite hints: " << btf.error().message << '\n';
    return;
  }
  std::vector<terminal::HintLine> lines;
  for (const model::Device& device : inventory.devices) {
    if (device.coverage == model::Coverage::measured) {
      const auto drive = drives.find(device.name);
      const model::NvmeIdentity* identity = drive == drives.end() ? nullptr : drive->second.get();
      lines.push_back({device.name, analysis::write_hint_path(btf->hint_reach, device, identity)});
    }
  }
  terminal::print_hint_paths(lines, out);
}

}  // namespace

util::ExitCode report_devices(const config::Config& config, std::ostream& out) {
  const auto inventory = inventory::read_inventory({}, {config.devices.include, config.devices.exclude});
  if (!inventory) {
    out << inventory.error().message << '\n';
    return util::ExitCode::failure;
  }
  terminal::print_devices(*inventory, out);
  const Identities drives = report_drives(out);
  report_hints(*inventory, drives, out);
  if (const auto hierarchy = cgroups::find_hierarchy("/proc")) {
    terminal::print_io_accounting(cgroups::accounting_of(*hierarchy), out);
  }
  return util::ExitCode::success;
}

}  // namespace ssdpulse::runtime
