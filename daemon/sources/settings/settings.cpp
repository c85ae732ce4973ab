// SPDX-License-Identifier: Apache-2.0
#include "daemon/sources/settings/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <utility>

#include "daemon/sources/settings/disk_files.h"
#include "daemon/sources/settings/timer.h"
#include "daemon/sources/sysfs.h"
#include "daemon/util/read_file.h"

namespace ssdpulse::settings {

namespace sysfs = sources::sysfs;

namespace {

constexpr std::array kHostFiles{
    "proc/sys/kernel/osrelease",
    "proc/sys/vm/dirty_ratio",
    "proc/sys/vm/dirty_bytes",
    "proc/sys/vm/dirty_background_ratio",
    "proc/sys/vm/dirty_background_bytes",
    "proc/sys/vm/dirty_expire_centisecs",
    "proc/sys/vm/dirty_writeback_centisecs",
    "proc/sys/vm/swappiness",
    "sys/module/pcie_aspm/parameters/policy",
    "sys/module/nvme/parameters/poll_queues",
    "sys/module/nvme/parameters/write_queues",
    "sys/module/nvme/parameters/io_queue_depth",
    "sys/module/nvme/parameters/max_host_mem_size_mb",
    "sys/module/nvme_core/parameters/default_ps_max_latency_us",
    "sys/module/nvme_core/parameters/io_timeout",
    "sys/module/nvme_core/parameters/max_retries",
    "sys/module/nvme_core/parameters/multipath",
    "sys/module/raid456/parameters/devices_handle_discard_safely",
    "sys/fs/cgroup/io.cost.qos",
};

std::vector<std::string> names_in(const std::string& directory) {
  return sysfs::list_directory(directory).value_or(std::vector<std::string>{});
}

std::vector<std::string> measured_below(const model::Device& array, const model::Inventory& inventory) {
  std::vector<std::string> names;
  for (const model::Membership& member : inventory.memberships) {
    const auto is = [&](const model::Device& one) {
      return one.name == member.device && one.coverage == model::Coverage::measured;
    };
    if (member.array == array.name && std::any_of(inventory.devices.begin(), inventory.devices.end(), is)) {
      names.push_back(member.device);
    }
  }
  return names;
}

std::string controller_directory(const SettingsRoot& root, const model::DiskSettings& disk) {
  return root.directory + "/sys/class/nvme/" + disk.controller_name;
}

/// Adds the files of hidden NVMe multipath paths, and of the controllers that they lead through.
void add_path_files(const SettingsRoot& root, model::DiskSettings& disk) {
  for (const model::Path& path : disk.device.paths) {
    const auto directory = sysfs::disk_directory(root.directory + "/sys", path.disk_name);
    if (!directory || !sysfs::head_of_hidden_path(path.disk_name)) {
      continue;
    }
    for (const char* file : {"ana_state", "stat", "../state"}) {
      if (std::string text = sysfs::read_text(*directory + "/" + file); !text.empty()) {
        disk.files.set(fmt::format("paths/{}/{}", path.disk_name, sysfs::base_name(file)), std::move(text));
      }
    }
  }
}

void read_disks(const SettingsRoot& root, const model::Inventory& inventory, model::HostSettings& settings) {
  for (const model::Device& device : inventory.devices) {
    std::vector<std::string> below;
    if (device.coverage == model::Coverage::stacked) {
      below = measured_below(device, inventory);
    }
    if (device.coverage != model::Coverage::measured && below.empty()) {
      continue;
    }
    model::DiskSettings disk = read_disk(root, device);
    if (!disk.controller_name.empty()) {
      add_link_files(controller_directory(root, disk), disk.controller);
    }
    add_path_files(root, disk);
    disk.disks = std::move(below);
    (disk.disks.empty() ? settings.disks : settings.arrays).push_back(std::move(disk));
  }
}

std::vector<std::string> words(const std::string& line) {
  std::istringstream text(line);
  std::vector<std::string> found;
  for (std::string word; text >> word;) {
    found.push_back(std::move(word));
  }
  return found;
}

void read_mounts(const model::Inventory& inventory, model::HostSettings& settings) {
  for (const model::Filesystem& filesystem : inventory.filesystems) {
    const auto is_measured = [&](const model::DiskSettings& disk) { return disk.device.name == filesystem.device; };
    if (std::none_of(settings.disks.begin(), settings.disks.end(), is_measured)) {
      continue;
    }
    const auto known = std::find_if(settings.mounts.begin(), settings.mounts.end(),
                                    [&](const auto& mount) { return mount.mountpoint == filesystem.mountpoint; });
    if (known != settings.mounts.end()) {
      known->disks.push_back(filesystem.device);
      continue;
    }
    model::MountSettings mount{
        filesystem.mountpoint, filesystem.fstype, filesystem.options, filesystem.volumes, {filesystem.device}};
    mount.unshown = filesystem.unshown;
    settings.mounts.push_back(std::move(mount));
  }
}

std::optional<std::uint64_t> memory_bytes(const std::string& proc) {
  std::istringstream lines(util::read_file(proc + "/meminfo", 1U << 16U).value_or(""));
  for (std::string line; std::getline(lines, line);) {
    const auto fields = words(line);
    if (fields.size() > 1 && fields[0] == "MemTotal:") {
      const auto kilobytes = sysfs::parse_number(fields[1]);
      return kilobytes ? std::optional(*kilobytes * 1024) : std::nullopt;
    }
  }
  return std::nullopt;
}

std::optional<double> uptime_seconds(const std::string& proc) {
  double seconds = 0;
  std::istringstream text(sysfs::read_text(proc + "/uptime"));
  return text >> seconds && seconds > 0 ? std::optional(seconds) : std::nullopt;
}

std::uint32_t numbered(const std::string& directory, std::string_view prefix) {
  const auto names = names_in(directory);
  return static_cast<std::uint32_t>(std::count_if(names.begin(), names.end(), [&](const std::string& name) {
    return name.rfind(prefix, 0) == 0 && sysfs::parse_number(std::string_view(name).substr(prefix.size()));
  }));
}

/// Not qemu-img, qemu-ga and the emulators of single programs.
bool runs_guests(const std::string& name) {
  return name.rfind("qemu-system", 0) == 0 || name.rfind("qemu-storage", 0) == 0 || name == "qemu-kvm" || name == "kvm";
}

void read_virtual_machines(const std::string& proc, model::HostSettings& settings) {
  constexpr std::size_t kMaxProcesses = 100'000;
  constexpr std::size_t kMaxLines = 256;
  std::size_t seen = 0;
  for (const std::string& process : names_in(proc)) {
    if (!sysfs::parse_number(process) || ++seen > kMaxProcesses) {
      continue;
    }
    const std::string name = sysfs::read_text(proc + "/" + process + "/comm");
    if (runs_guests(name) && settings.virtual_machines.size() < kMaxLines) {
      settings.virtual_machines.push_back(util::read_file(proc + "/" + process + "/cmdline", 1U << 18U).value_or(""));
    }
  }
}

/// The first two levels of the tree: slices and their services.
void read_cgroups(const std::string& directory, const std::string& below, int levels, model::HostSettings& settings) {
  constexpr std::size_t kMaxCgroupLimits = 256;
  for (const char* file : {"io.max", "io.latency"}) {
    const std::string limit = sysfs::read_text(directory + below + "/" + file);
    if (!limit.empty() && settings.cgroup_limits.size() < kMaxCgroupLimits) {
      settings.cgroup_limits[below.empty() ? file : below.substr(1) + "/" + file] = limit;
    }
  }
  if (levels == 0) {
    return;
  }
  for (const std::string& name : names_in(directory + below)) {
    if (name.find('.') != std::string::npos && (name.size() > 6 && (name.compare(name.size() - 6, 6, ".slice") == 0 ||
                                                                    name.find(".service") != std::string::npos))) {
      read_cgroups(directory, below + "/" + name, levels - 1, settings);
    }
  }
}

}  // namespace

model::DiskSettings read_disk(const SettingsRoot& root, const model::Device& device) {
  model::DiskSettings disk;
  disk.device = device;
  const std::string name = sysfs::to_sysfs_name(device.name);
  const std::string directory = root.directory + "/sys/block/" + name;
  disk.files = disk_files(directory);
  disk.partitions = partitions(directory, name);
  if (device.transport == "nvme") {
    disk.controller_name = sysfs::nvme_controller_of(directory);
    disk.controller = controller_files(controller_directory(root, disk));
  }
  return disk;
}

model::Attributes read_host_files(const SettingsRoot& root) {
  model::Attributes files;
  for (const char* file : kHostFiles) {
    if (const auto text = sysfs::read_raw(root.directory + "/" + file)) {
      files.set(file, std::string(sysfs::trim(*text).substr(0, 256)));
    }
  }
  return files;
}

void add_rooms(const std::vector<model::FilesystemRoom>& rooms, model::HostSettings& settings) {
  for (model::MountSettings& mount : settings.mounts) {
    const auto room = std::find_if(rooms.begin(), rooms.end(), [&](const model::FilesystemRoom& one) {
      return one.mountpoint == mount.mountpoint;
    });
    if (room != rooms.end() && room->size_bytes > room->free_bytes) {
      const auto used = static_cast<double>(room->size_bytes - room->free_bytes);
      mount.used_ratio = used / (used + static_cast<double>(room->available_bytes));
    }
  }
}

model::HostSettings read(const SettingsRoot& root, const model::Inventory& inventory) {
  const std::string& top = root.directory;
  const std::string sys = top + "/sys";
  model::HostSettings settings;
  read_disks(root, inventory, settings);
  read_mounts(inventory, settings);
  settings.files = read_host_files(root);
  settings.uptime_seconds = uptime_seconds(top + "/proc");
  settings.memory_bytes = memory_bytes(top + "/proc");
  if (const auto cpus = numbered(sys + "/devices/system/cpu", "cpu")) {
    settings.cpus = cpus;
  }
  read_virtual_machines(top + "/proc", settings);
  settings.swaps = inventory.swaps;
  read_cgroups(sys + "/fs/cgroup", "", 2, settings);
  settings.fstrim = read_timer(top, "fstrim.timer");
  return settings;
}

}  // namespace ssdpulse::settings
