// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "daemon/base/number_text.h"
#include "daemon/block/kernel_btf.h"
#include "daemon/block/write_hints.h"
#include "daemon/cli/command_output.h"
#include "daemon/cli/commands.h"
#include "daemon/config/config.h"
#include "daemon/host/inventory.h"
#include "daemon/host/layer_reader.h"
#include "daemon/nvme/drive_monitor.h"
#include "daemon/nvme_pages/drive_reading.h"
#include "daemon/tenants/cgroup_paths.h"
#include "exporters/terminal/device_list.h"
#include "exporters/terminal/ladder_text.h"

namespace ssdpulse::cli {
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

terminal::DriveLine line_of(const nvme::DriveAnswer& answer) {
  terminal::DriveLine line;
  line.controller = "nvme" + std::to_string(answer.subsystem.controller);
  line.firmware = answer.subsystem.firmware;
  for (const model::NvmeNamespace& entry : answer.subsystem.namespaces) {
    line.namespaces.push_back(entry.device);
  }
  if (!answer.reading) {
    line.failure = answer.failure;
  } else {
    const nvme::SourceChoice choice = nvme::choose_source(*answer.reading);
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
  terminal::VolumeHealth health = {};
};

Identities read_drives(terminal::DriveList& list) {
  const auto answers = nvme::poll_once();
  if (!answers) {
    list.failure = answers.error().message;
    return {};
  }
  Identities identities;
  for (const nvme::DriveAnswer& answer : *answers) {
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
      report.hints.push_back({device.name, block::write_hint_path(btf->hint_reach, device, identity)});
    }
  }
}

util::Result<HostReport> read_report(const config::Config& config) {
  auto inventory = host::read_inventory({}, {config.devices.include, config.devices.exclude});
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
  for (const model::Layer& layer : result.inventory.layers) {
    if (auto signals = host::read_volume_signals("/sys", layer)) {
      result.health.emplace(layer.name, std::move(*signals));
    }
  }
  add_hint_paths(read_drives(result.drives), result);
  return result;
}

void print_text(const HostReport& report, std::ostream& out) {
  terminal::print_devices(report.inventory, out);
  terminal::print_stacks(report.inventory, report.health, out);
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
  if (const auto hierarchy = tenants::find_hierarchy("/proc")) {
    terminal::print_io_accounting(tenants::accounting_of(*hierarchy), out);
  }
}

struct DevicesOptions {
  ConfigurationOptions configuration;
  bool json = false;
  std::optional<unsigned> ladder_seconds = {};
};

config::Web web_of(const ConfigurationOptions& options, const config::Config& configured) {
  config::Web web = configured.web;
  if (!options.config_file) {
    ask_the_service(web);
  }
  return web;
}

/// Where writes were amplified in the next seconds.
ExitCode show_ladder(const config::Web& web, unsigned seconds) {
  auto api = Api::open({}, web);
  if (!api) {
    return fail(api.error());
  }
  const auto before = api->get("stacks");
  if (!before) {
    return fail(before.error());
  }
  std::this_thread::sleep_for(std::chrono::seconds(seconds));
  const auto now = api->get("stacks").and_then(
      [&](nlohmann::json stacks) -> util::Result<std::pair<nlohmann::json, nlohmann::json>> {
        auto devices = api->get("devices");
        if (!devices) {
          return tl::make_unexpected(devices.error());
        }
        return std::pair(std::move(stacks), std::move(*devices));
      });
  if (!now) {
    return fail(now.error());
  }
  std::cout << "in the last " << util::duration_text(seconds) << ", by the daemon at " << api->address() << "\n\n";
  terminal::print_ladders(*before, now->first, now->second, std::cout);
  return std::cout.flush() ? ExitCode::success : ExitCode::failure;
}

/// Asks the sources once and prints what they report; loop devices with nothing attached are left out. The JSON is
/// described at terminal::devices_json; if there is none, the reason goes to stderr.
ExitCode list_devices(const DevicesOptions& options) {
  const auto configured = configure_or_complain(options.configuration);
  if (!configured) {
    return ExitCode::usage;
  }
  if (options.ladder_seconds) {
    return show_ladder(web_of(options.configuration, *configured), *options.ladder_seconds);
  }
  const auto report = read_report(*configured);
  if (options.json) {
    if (!report) {
      return fail(report.error());
    }
    std::cout << terminal::devices_json(report->inventory, report->drives, report->hints, report->health);
    return std::cout.flush() ? ExitCode::success : ExitCode::failure;
  }
  if (report) {
    print_text(*report, std::cout);
  } else {
    std::cout << report.error().message << '\n';
  }
  print_modelled(web_of(options.configuration, *configured), std::cout);
  return report ? ExitCode::success : ExitCode::failure;
}

}  // namespace

void add_devices(CLI::App& app, ExitCode& exit_code) {
  CLI::App* command = app.add_subcommand("devices", "List block devices and whether they are measured");
  const auto options = std::make_shared<DevicesOptions>();
  add_configuration_options(*command, options->configuration);
  CLI::Option* const json = command->add_flag("--json", options->json, "As JSON");
  command
      ->add_option_function<unsigned>(
          "--ladder", [options](unsigned seconds) { options->ladder_seconds = seconds; },
          "Instead, where writes are amplified in so many seconds (10), as a daemon measures it")
      ->type_name("SECONDS")
      ->check(CLI::Range(1U, 3600U))
      ->expected(0, 1)
      ->default_str("10")
      ->excludes(json);
  command->callback([options, &exit_code] { exit_code = list_devices(*options); });
}

}  // namespace ssdpulse::cli
