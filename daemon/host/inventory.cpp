// SPDX-License-Identifier: Apache-2.0
#include "daemon/host/inventory.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include "daemon/base/glob.h"
#include "daemon/base/sysfs.h"
#include "daemon/host/disks.h"
#include "daemon/host/filesystems.h"
#include "daemon/host/layer_reader.h"
#include "daemon/model/device_identity.h"

namespace ssdpulse::host {
namespace {

/// Hidden disk -> its directory, by head. All kernels keep a hidden disk below its controller, but not all list it in
/// /sys/block.
using HiddenPaths = std::map<std::string, std::map<std::string, std::string>>;

HiddenPaths find_hidden_paths(const std::string& sys_root) {
  HiddenPaths hidden;
  const std::string controllers = sys_root + "/class/nvme";
  for (const std::string& controller : sysfs::names_in(controllers)) {
    const std::string directory = controllers + "/" + controller;
    for (const std::string& name : sysfs::names_in(directory)) {
      if (const auto head = sysfs::head_of_hidden_path(name)) {
        hidden[*head].emplace(name, directory + "/" + name);
      }
    }
  }
  return hidden;
}

model::Coverage coverage_of(const model::Device& device, const Stacking& stacking, const DeviceFilter& filter) {
  if (stacking.is_stacked(device.name)) {
    return model::Coverage::stacked;
  }
  if (!filter.takes(device.name)) {
    return model::Coverage::excluded;
  }
  return device.size_bytes == 0 ? model::Coverage::empty : model::Coverage::measured;
}

/// Also true in the first domain of Xen, which has the host's hardware.
bool is_virtual_machine(const InventoryRoots& roots) {
  constexpr std::size_t kFirstProcessorBytes = 16U << 10U;
  std::ifstream cpuinfo(roots.proc + "/cpuinfo", std::ios::binary);
  std::string text(kFirstProcessorBytes, '\0');
  cpuinfo.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, cpuinfo.gcount())));
  return text.find(" hypervisor") != std::string::npos || !sysfs::read_text(roots.sys + "/hypervisor/type").empty() ||
         sysfs::read_raw(roots.proc + "/device-tree/hypervisor/compatible").has_value();
}

/// Only drivers that take requests have hardware queues. A multipath head that has no path at the moment has none
/// either.
bool has_requests(const std::string& directory, const model::Device& device) {
  const auto queues = sysfs::list_directory(directory + "/mq");
  return queues || queues.error().error_number != ENOENT || device.transport == "nvme" ||
         !sysfs::list_directory(directory + "/queue");
}

void read_paths(const std::string& sys_root, const std::string& directory, const HiddenPaths& hidden,
                model::Device& device) {
  const auto paths = hidden.find(device.name);
  if (paths == hidden.end()) {
    device.paths.push_back(read_path(directory, device.name));
    device.attachment = attachment_of(sys_root, directory);
    device.has_requests = has_requests(directory, device);
    return;
  }
  device.attachment = attachment_of(sys_root, paths->second.begin()->second);
  // The head's own queue keeps no statistics on some kernels (5.10, 6.1); its paths do, and only they carry requests.
  device.iostats = true;
  for (const auto& [name, path_directory] : paths->second) {
    device.paths.push_back(read_path(path_directory, name));
    device.iostats = device.iostats && keeps_iostats(path_directory);
  }
}

/// The serial number, perhaps none, that this incarnation of the disk reported before. Without diskseq (before 5.15),
/// the device number has to be enough.
std::optional<util::OutsideText> known_serial(const model::Inventory* previous, const std::string& directory,
                                              const std::string& name) {
  if (previous == nullptr) {
    return std::nullopt;
  }
  const auto known = std::find_if(previous->devices.begin(), previous->devices.end(),
                                  [&](const model::Device& device) { return device.name == name; });
  if (known == previous->devices.end() || known->paths.size() != 1) {
    return std::nullopt;
  }
  const std::uint64_t diskseq = sysfs::read_number(directory + "/diskseq").value_or(0);
  const bool same = model::same_disk(known->paths.front().disk_name, diskseq, known->paths.front()) &&
                    (diskseq != 0 || sysfs::read_text(directory + "/dev") ==
                                         std::to_string(known->major) + ":" + std::to_string(known->minor));
  return same ? std::optional(known->serial) : std::nullopt;
}

void add_uses(const InventoryRoots& roots, const Stacking& stacking, model::Inventory& inventory) {
  std::set<std::string> measured;
  for (const model::Device& device : inventory.devices) {
    if (device.coverage == model::Coverage::measured) {
      measured.insert(device.name);
    }
  }
  Uses uses = read_uses(stacking, roots, measured);
  std::move(uses.warnings.begin(), uses.warnings.end(), std::back_inserter(inventory.warnings));
  inventory.filesystems = std::move(uses.filesystems);
  inventory.unnamed_filesystems = std::move(uses.unnamed);
  inventory.swaps = std::move(uses.swaps);
}

}  // namespace

bool DeviceFilter::takes(const std::string& device) const {
  const auto named = [&](const std::vector<std::string>& globs) {
    return std::find(globs.begin(), globs.end(), device) != globs.end();
  };
  const bool by_pattern = util::any_glob_matches(include, device) && !util::any_glob_matches(exclude, device);
  return !named(exclude) && (named(include) || by_pattern);
}

util::Result<model::Inventory> read_inventory(const InventoryRoots& roots, const DeviceFilter& filter,
                                              const model::Inventory* previous) {
  const auto names = sysfs::list_directory(roots.sys + "/block");
  if (!names) {
    return tl::unexpected<util::Error>(names.error().within("no block devices found (is sysfs mounted?)"));
  }
  const HiddenPaths hidden = find_hidden_paths(roots.sys);
  model::Inventory inventory;
  std::vector<std::string> disks;
  for (const std::string& name : *names) {
    if (!util::is_plain_name(name)) {  // names are keys and labels: no driver of the kernel has one like that
      inventory.warnings.push_back("a disk is left out because of its name: " + util::for_log(name));
    } else if (!sysfs::head_of_hidden_path(name)) {
      disks.push_back(name);
    }
  }
  const Stacking stacking(roots.sys, disks);

  const bool virtual_machine = is_virtual_machine(roots);
  for (const std::string& name : disks) {
    const std::string directory = roots.sys + "/block/" + name;
    auto device = read_device(directory, name, known_serial(previous, directory, name));
    if (!device) {
      continue;
    }
    device->of_virtual_machine = virtual_machine;
    device->coverage = coverage_of(*device, stacking, filter);
    if (device->coverage != model::Coverage::stacked) {
      read_paths(roots.sys, directory, hidden, *device);
    }
    inventory.devices.push_back(std::move(*device));
  }
  inventory.memberships = stacking.memberships();
  inventory.volumes = stacking.volumes();
  inventory.layers = read_layers(roots, stacking, inventory.devices);
  add_uses(roots, stacking, inventory);
  return inventory;
}

std::vector<std::pair<std::string, std::string>> named_and_not_measured(const std::vector<std::string>& include,
                                                                        const model::Inventory& inventory) {
  std::vector<std::pair<std::string, std::string>> found;
  for (const std::string& name : include) {
    if (name.find_first_of("*?[\\") != std::string::npos) {
      continue;
    }
    const auto device = std::find_if(inventory.devices.begin(), inventory.devices.end(),
                                     [&](const model::Device& one) { return one.name == name; });
    if (device == inventory.devices.end()) {
      found.emplace_back(name, "there is no such disk");
    } else if (device->coverage != model::Coverage::measured) {
      found.emplace_back(name, model::kCoverageWords[static_cast<std::size_t>(device->coverage)]);
    }
  }
  return found;
}

}  // namespace ssdpulse::host
