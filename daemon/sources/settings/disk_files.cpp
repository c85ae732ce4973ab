// SPDX-License-Identifier: Apache-2.0
// Which files of a disk, an array and a controller are read? A rule that needs another one adds it here.
#include "daemon/sources/settings/disk_files.h"

#include <array>

#include "daemon/sources/sysfs.h"

namespace ssdpulse::settings {

namespace sysfs = sources::sysfs;

namespace {

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

constexpr std::array kControllerFiles{
    "power/pm_qos_latency_tolerance_us", "queue_count", "state", "transport", "hmb",
};

constexpr std::array kLinkFiles{
    "device/current_link_speed",
    "device/current_link_width",
    "device/max_link_speed",
    "device/max_link_width",
};

void take(const std::string& directory, const char* file, model::Attributes& files) {
  if (const auto text = sysfs::read_raw(directory + "/" + file)) {
    files.set(file, std::string(sysfs::trim(*text).substr(0, 256)));
  }
}

/// For directories with a number in their name: the file of the first one, under a name without the number.
void take_first(const std::string& directory, const char* file, const char* as, model::Attributes& files) {
  const auto names = sysfs::list_directory(directory);
  if (names && !names->empty()) {
    if (const auto text = sysfs::read_raw(directory + "/" + names->front() + "/" + file)) {
      files.set(as, std::string(sysfs::trim(*text).substr(0, 256)));
    }
  }
}

/// Of a volume on a single disk or partition.
void take_only_slave(const std::string& directory, model::Attributes& files) {
  const auto names = sysfs::list_directory(directory + "/slaves");
  if (names && names->size() == 1) {
    take_first(directory + "/slaves", "stat", "slave/stat", files);
  }
}

void take_member_offsets(const std::string& directory, model::Attributes& files) {
  constexpr std::size_t kMaxMembers = 64;
  std::size_t taken = 0;
  for (const std::string& name : sysfs::list_directory(directory + "/md").value_or(std::vector<std::string>{})) {
    if (name.rfind("dev-", 0) == 0 && taken++ < kMaxMembers) {
      take(directory, ("md/" + name + "/offset").c_str(), files);
    }
  }
}

}  // namespace

model::Attributes disk_files(const std::string& directory) {
  model::Attributes files;
  for (const char* file : kDiskFiles) {
    take(directory, file, files);
  }
  take_first(directory + "/device/scsi_disk", "cache_type", "scsi_cache_type", files);
  take_first(directory + "/device/scsi_host", "link_power_management_policy", "link_power_management_policy", files);
  take_only_slave(directory, files);
  take_member_offsets(directory, files);
  return files;
}

model::Attributes controller_files(const std::string& directory) {
  model::Attributes files;
  for (const char* file : kControllerFiles) {
    take(directory, file, files);
  }
  return files;
}

void add_link_files(const std::string& directory, model::Attributes& files) {
  for (const char* file : kLinkFiles) {
    take(directory, file, files);
  }
}

std::vector<model::PartitionSettings> partitions(const std::string& directory, const std::string& disk) {
  constexpr std::uint64_t kSector = 512;  // the unit of start and size
  std::vector<model::PartitionSettings> found;
  for (const std::string& name : sysfs::list_directory(directory).value_or(std::vector<std::string>{})) {
    const std::string place = directory + "/" + name;
    if (name.rfind(disk, 0) != 0 || !sysfs::read_number(place + "/partition")) {
      continue;
    }
    const auto start = sysfs::read_number(place + "/start");
    const auto size = sysfs::read_number(place + "/size");
    if (start && size) {
      found.push_back({name, *start * kSector, *size * kSector});
    }
  }
  return found;
}

}  // namespace ssdpulse::settings
