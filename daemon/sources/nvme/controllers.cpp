// SPDX-License-Identifier: Apache-2.0
// Where sysfs has namespaces: a multipath head below its subsystem, any other block device below its controller. Hidden
// paths (nvme0c1n1) do not count as block devices. A block device's first number is not always its controller's.
#include "daemon/sources/nvme/controllers.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "daemon/sources/sysfs.h"
#include "daemon/util/outside_text.h"
#include "daemon/util/read_file.h"

namespace ssdpulse::nvme {
namespace {

namespace sysfs = sources::sysfs;

constexpr std::size_t kMaxAttributeBytes = 4096;
constexpr std::string_view kDiscoveryNqn = "nqn.2014-08.org.nvmexpress.discovery";
constexpr std::uint32_t kBroadcastNsid = 0xffffffff;

/// Takes a number, as the kernel prints it, from the front of `text`.
std::optional<std::uint32_t> take_number(std::string_view& text) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const auto digits = static_cast<std::size_t>(end - text.data());
  if (error != std::errc() || (digits > 1 && text.front() == '0')) {
    return std::nullopt;
  }
  text.remove_prefix(digits);
  return number;
}

bool skip(std::string_view& text, std::string_view prefix) {
  const bool there = text.substr(0, prefix.size()) == prefix;
  text.remove_prefix(there ? prefix.size() : 0);
  return there;
}

std::optional<std::uint32_t> controller_number(std::string_view name) {
  const auto number = skip(name, "nvme") ? take_number(name) : std::nullopt;
  return name.empty() ? number : std::nullopt;
}

bool is_block_device(std::string_view name) {
  return skip(name, "nvme") && take_number(name) && skip(name, "n") && take_number(name) && name.empty();
}

std::string attribute(const std::string& path) {
  const auto text = util::read_file(path, kMaxAttributeBytes);
  return text ? std::string(util::without_padding(*text)) : std::string();
}

NvmeSubsystem read_controller(const std::string& directory, std::uint32_t number) {
  NvmeSubsystem drive;
  drive.controller = number;
  const auto state = util::read_file(directory + "/state", kMaxAttributeBytes);
  drive.state = state ? util::for_log(*state) : state.error().message;
  drive.nqn = attribute(directory + "/subsysnqn");
  drive.transport = util::for_log(attribute(directory + "/transport"));
  drive.address = util::for_log(attribute(directory + "/address"));
  drive.model = attribute(directory + "/model");
  drive.serial = attribute(directory + "/serial");
  drive.firmware = attribute(directory + "/firmware_rev");
  return drive;
}

bool is_discovery(const NvmeSubsystem& drive, const std::string& directory) {
  return drive.nqn == kDiscoveryNqn || attribute(directory + "/cntrltype") == "discovery";
}

/// Controller -> directory of its subsystem. A kernel without the class has subsystems of one controller each.
std::map<std::uint32_t, std::string> find_subsystems(const std::string& sys_root) {
  std::map<std::uint32_t, std::string> subsystem_of;
  const std::string subsystems = sys_root + "/class/nvme-subsystem";
  for (const std::string& subsystem : sysfs::list_directory(subsystems).value_or(std::vector<std::string>{})) {
    const std::string directory = subsystems + "/" + subsystem;
    for (const std::string& name : sysfs::list_directory(directory).value_or(std::vector<std::string>{})) {
      if (const auto number = controller_number(name)) {
        subsystem_of.emplace(*number, directory);
      }
    }
  }
  return subsystem_of;
}

void add_namespaces(const std::string& directory, NvmeSubsystem& drive, std::vector<std::string>& warnings) {
  const auto names = sysfs::list_directory(directory);
  if (!names) {
    warnings.push_back("namespaces are missing: " + names.error().message);
    return;
  }
  for (const std::string& name : *names) {
    if (!is_block_device(name)) {
      continue;
    }
    const std::string text = attribute(directory + "/" + name + "/nsid");
    std::string_view rest = text;
    const auto nsid = take_number(rest);
    if (!nsid || !rest.empty() || *nsid == 0 || *nsid == kBroadcastNsid) {
      warnings.push_back(name + " is left out: '" + text + "' is not a namespace identifier");
      continue;
    }
    drive.namespaces.push_back({name, *nsid, 0});
  }
}

}  // namespace

util::OutsideText controller_serial(std::uint32_t controller, const std::string& sys_root) {
  return attribute(sys_root + "/class/nvme/nvme" + std::to_string(controller) + "/serial");
}

util::Result<NvmeHost> read_nvme_host(const std::string& sys_root) {
  NvmeHost host;
  const std::string controllers = sys_root + "/class/nvme";
  const auto names = sysfs::list_directory(controllers);
  if (!names) {
    const bool no_nvme = names.error().error_number == ENOENT;
    return no_nvme ? util::Result<NvmeHost>(host) : tl::make_unexpected(names.error());
  }
  const auto subsystem_of = find_subsystems(sys_root);
  struct Found {
    NvmeSubsystem drive;
    std::vector<std::string> directories;  // those that may hold namespaces
  };
  std::map<std::string, Found> found;
  for (const std::string& name : *names) {
    const auto number = controller_number(name);
    const std::string directory = controllers + "/" + name;
    if (!number) {
      continue;
    }
    NvmeSubsystem drive = read_controller(directory, *number);
    if (is_discovery(drive, directory)) {
      continue;
    }
    const auto subsystem = subsystem_of.find(*number);
    const bool alone = subsystem == subsystem_of.end();
    auto [entry, first] = found.try_emplace(alone ? directory : subsystem->second);
    Found& subsystem_found = entry->second;
    if (first && !alone) {
      subsystem_found.directories.push_back(subsystem->second);
    }
    subsystem_found.directories.push_back(directory);
    const auto rank = [](const NvmeSubsystem& candidate) {
      return std::tuple(!candidate.live(), candidate.controller);
    };
    if (first || rank(drive) < rank(subsystem_found.drive)) {
      subsystem_found.drive = std::move(drive);
    }
  }
  for (auto& [key, entry] : found) {
    for (const std::string& directory : entry.directories) {
      add_namespaces(directory, entry.drive, host.warnings);
    }
    std::sort(entry.drive.namespaces.begin(), entry.drive.namespaces.end(),
              [](const auto& a, const auto& b) { return std::tie(a.nsid, a.device) < std::tie(b.nsid, b.device); });
    host.subsystems.push_back(std::move(entry.drive));
  }
  std::sort(host.subsystems.begin(), host.subsystems.end(),
            [](const NvmeSubsystem& a, const NvmeSubsystem& b) { return a.controller < b.controller; });
  return host;
}

}  // namespace ssdpulse::nvme
