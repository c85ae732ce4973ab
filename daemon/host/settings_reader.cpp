// SPDX-License-Identifier: Apache-2.0
#include "daemon/host/settings_reader.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <map>
#include <sstream>
#include <utility>

#include "daemon/base/file_descriptor.h"
#include "daemon/base/sysfs.h"

namespace ssdpulse::host {
namespace {

/// Of a disk or an array, below its directory in sysfs. A rule that needs another file adds it here.
constexpr std::array kDiskFiles{
    "queue/scheduler",
    "queue/nr_requests",
    "queue/nomerges",
    "queue/rq_affinity",
    "queue/read_ahead_kb",
    "queue/wbt_lat_usec",
    "queue/rotational",
    "queue/write_cache",
    "queue/fua",
    "queue/max_sectors_kb",
    "queue/max_hw_sectors_kb",
    "queue/iostats",
    "queue/io_timeout",
    "queue/io_poll",
    "queue/discard_max_bytes",
    "queue/discard_max_hw_bytes",
    "queue/discard_granularity",
    "queue/minimum_io_size",
    "queue/optimal_io_size",
    "queue/physical_block_size",
    "queue/logical_block_size",
    "queue/zoned",
    "mq/0/nr_tags",
    "cache_type",
    "alignment_offset",
    "device/queue_depth",
    "device/timeout",
    "device/iopolicy",  // of NVMe multipath, whose device is the subsystem
                        // of arrays
    "stat",
    "md/level",
    "md/chunk_size",
    "md/sync_action",
    "md/sync_speed_max",
    "md/raid_disks",
    "dm/name",
    "dm/uuid",
};

/// Of an NVMe controller: only what the kernel knows by itself.
constexpr std::array kControllerFiles{"power/pm_qos_latency_tolerance_us", "queue_count", "state", "transport", "hmb"};

/// Of a controller's PCIe link. Each reading asks the device, which may wake it, or wait for one that is stuck.
constexpr std::array kLinkFiles{"device/current_link_speed", "device/current_link_width", "device/max_link_speed",
                                "device/max_link_width"};

/// Below the root of the host.
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

void take(const std::string& directory, const char* file, const char* as, model::Attributes& files) {
  if (const auto text = sysfs::read_raw(directory + "/" + file)) {
    files.set(as, std::string(sysfs::trim(*text).substr(0, 256)));
  }
}

template <std::size_t kFiles>
void take_all(const std::string& directory, const std::array<const char*, kFiles>& names, model::Attributes& files) {
  for (const char* file : names) {
    take(directory, file, file, files);
  }
}

/// For directories with a number in their name: the file of the first one, under a name without the number.
void take_first(const std::string& directory, const char* file, const char* as, model::Attributes& files) {
  if (const auto names = sysfs::names_in(directory); !names.empty()) {
    take(directory + "/" + names.front(), file, as, files);
  }
}

void take_member_offsets(const std::string& directory, model::Attributes& files) {
  constexpr std::size_t kMaxMembers = 64;
  std::size_t taken = 0;
  for (const std::string& name : sysfs::names_in(directory + "/md")) {
    if (name.starts_with("dev-") && taken++ < kMaxMembers) {
      const std::string file = "md/" + name + "/offset";
      take(directory, file.c_str(), file.c_str(), files);
    }
  }
}

/// `directory`: of a disk or an array, in sysfs.
model::Attributes disk_files(const std::string& directory) {
  model::Attributes files;
  take_all(directory, kDiskFiles, files);
  take_first(directory + "/device/scsi_disk", "cache_type", "scsi_cache_type", files);
  take_first(directory + "/device/scsi_host", "link_power_management_policy", "link_power_management_policy", files);
  if (sysfs::names_in(directory + "/slaves").size() == 1) {  // a volume on a single disk or partition
    take_first(directory + "/slaves", "stat", "slave/stat", files);
  }
  take_member_offsets(directory, files);
  return files;
}

/// `directory`: of the disk, in sysfs; `disk`: the kernel's name of it.
std::vector<model::PartitionSettings> partitions(const std::string& directory, const std::string& disk) {
  constexpr std::uint64_t kSector = 512;  // the unit of start and size
  std::vector<model::PartitionSettings> found;
  for (const std::string& name : sysfs::names_in(directory)) {
    const std::string partition = directory + "/" + name;
    if (!name.starts_with(disk) || !sysfs::read_number(partition + "/partition")) {
      continue;
    }
    const auto start = sysfs::read_number(partition + "/start");
    const auto size = sysfs::read_number(partition + "/size");
    if (start && size) {
      found.push_back({name, *start * kSector, *size * kSector});
    }
  }
  return found;
}

constexpr std::size_t kMaxUnitBytes = 1U << 16U;
/// In the order in which one hides the next (systemd.unit(5)).
constexpr auto kUnitDirectories =
    std::to_array<const char*>({"/etc/systemd/system/", "/run/systemd/system/", "/usr/local/lib/systemd/system/",
                                "/usr/lib/systemd/system/", "/lib/systemd/system/"});

/// An empty OnCalendar= cancels earlier ones.
void take_lines(const std::string& unit, model::TimerSettings& timer) {
  std::istringstream lines(unit);
  for (std::string line; std::getline(lines, line);) {
    const std::string_view text = sysfs::trim(line);
    const std::size_t is = text.find('=');
    const std::string_view key = sysfs::trim(text.substr(0, is));
    const std::string value(is == std::string_view::npos ? "" : sysfs::trim(text.substr(is + 1)));
    if (key == "OnCalendar") {
      timer.calendar = value;
    } else if (key == "RandomizedDelaySec") {
      timer.delay = value;
    }
  }
}

bool exists(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0;
}

/// What systemd's files contain about a timer, such as fstrim.timer. The manager is not asked, which needs a bus: a
/// timer that somebody started by hand is not seen.
model::TimerSettings read_timer(const std::string& root, const std::string& name) {
  model::TimerSettings timer;
  if (!exists(root + "/etc/systemd/system")) {
    return timer;
  }
  timer.enabled = false;
  for (const char* units : kUnitDirectories) {
    timer.enabled = *timer.enabled || exists(root + units + "timers.target.wants/" + name);
  }
  for (const char* units : kUnitDirectories) {
    const std::string unit = root + units + name;
    if (sysfs::link_target(unit) == "/dev/null") {
      timer.enabled = false;  // masked
      return timer;
    }
    if (const auto text = util::read_file(unit, kMaxUnitBytes)) {
      take_lines(*text, timer);
      break;
    }
  }
  std::map<std::string, std::string> drop_ins;  // by file name, the order in which they apply, wherever they are
  for (const char* units : kUnitDirectories) {
    const std::string directory = root + units + name + ".d";
    for (const std::string& file : sysfs::names_in(directory)) {
      if (file.ends_with(".conf")) {
        drop_ins.try_emplace(file, directory + "/" + file);
      }
    }
  }
  for (const auto& [file, path] : drop_ins) {
    take_lines(util::read_file(path, kMaxUnitBytes).value_or(""), timer);
  }
  return timer;
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

std::string controller_directory(const std::string& root, const model::DiskSettings& disk) {
  return root + "/sys/class/nvme/" + disk.controller_name;
}

/// Adds the files of hidden NVMe multipath paths, and of the controllers that they lead through.
void add_path_files(const std::string& root, model::DiskSettings& disk) {
  for (const model::Path& path : disk.device.paths) {
    const auto directory = sysfs::disk_directory(root + "/sys", path.disk_name);
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

void read_disks(const std::string& root, const model::Inventory& inventory, model::HostSettings& settings) {
  for (const model::Device& device : inventory.devices) {
    std::vector<std::string> below;
    if (device.coverage == model::Coverage::stacked) {
      below = measured_below(device, inventory);
    }
    if (device.coverage != model::Coverage::measured && below.empty()) {
      continue;
    }
    model::DiskSettings disk = read_disk_settings(root, device);
    if (!disk.controller_name.empty()) {
      take_all(controller_directory(root, disk), kLinkFiles, disk.controller);
    }
    add_path_files(root, disk);
    disk.disks = std::move(below);
    (disk.disks.empty() ? settings.disks : settings.arrays).push_back(std::move(disk));
  }
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
  const std::string text = util::read_file(proc + "/meminfo", 1U << 16U).value_or("");
  const auto fields = sysfs::words_in(std::string(sysfs::rest_of_line(text, "MemTotal:").value_or("")));
  const auto kilobytes = fields.empty() ? std::nullopt : sysfs::parse_number(fields[0]);
  return kilobytes ? std::optional(*kilobytes * 1024) : std::nullopt;
}

std::optional<double> uptime_seconds(const std::string& proc) {
  double seconds = 0;
  std::istringstream text(sysfs::read_text(proc + "/uptime"));
  return text >> seconds && seconds > 0 ? std::optional(seconds) : std::nullopt;
}

std::uint32_t numbered(const std::string& directory, std::string_view prefix) {
  const auto names = sysfs::names_in(directory);
  return static_cast<std::uint32_t>(std::count_if(names.begin(), names.end(), [&](const std::string& name) {
    return name.starts_with(prefix) && sysfs::parse_number(std::string_view(name).substr(prefix.size()));
  }));
}

/// Not qemu-img, qemu-ga and the emulators of single programs.
bool runs_guests(const std::string& name) {
  return name.starts_with("qemu-system") || name.starts_with("qemu-storage") || name == "qemu-kvm" || name == "kvm";
}

void read_virtual_machines(const std::string& proc, model::HostSettings& settings) {
  constexpr std::size_t kMaxProcesses = 100'000;
  constexpr std::size_t kMaxLines = 256;
  std::size_t seen = 0;
  for (const std::string& process : sysfs::names_in(proc)) {
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
  for (const std::string& name : sysfs::names_in(directory + below)) {
    if (name.size() > 6 && (name.ends_with(".slice") || name.find(".service") != std::string::npos)) {
      read_cgroups(directory, below + "/" + name, levels - 1, settings);
    }
  }
}

}  // namespace

model::DiskSettings read_disk_settings(const std::string& root, const model::Device& device) {
  model::DiskSettings disk;
  disk.device = device;
  const std::string name = sysfs::to_sysfs_name(device.name);
  const std::string directory = root + "/sys/block/" + name;
  disk.files = disk_files(directory);
  disk.partitions = partitions(directory, name);
  if (device.transport == "nvme") {
    disk.controller_name = sysfs::nvme_controller_of(directory);
    take_all(controller_directory(root, disk), kControllerFiles, disk.controller);
  }
  return disk;
}

model::Attributes read_host_files(const std::string& root) {
  model::Attributes files;
  take_all(root, kHostFiles, files);
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

model::HostSettings read(const std::string& root, const model::Inventory& inventory) {
  const std::string sys = root + "/sys";
  const std::string proc = root + "/proc";
  model::HostSettings settings;
  read_disks(root, inventory, settings);
  read_mounts(inventory, settings);
  settings.files = read_host_files(root);
  settings.uptime_seconds = uptime_seconds(proc);
  settings.memory_bytes = memory_bytes(proc);
  if (const auto cpus = numbered(sys + "/devices/system/cpu", "cpu")) {
    settings.cpus = cpus;
  }
  read_virtual_machines(proc, settings);
  settings.swaps = inventory.swaps;
  read_cgroups(sys + "/fs/cgroup", "", 2, settings);
  settings.fstrim = read_timer(root, "fstrim.timer");
  return settings;
}

}  // namespace ssdpulse::host
