// SPDX-License-Identifier: Apache-2.0
#include "daemon/host/settings_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

namespace ssdpulse::host {
namespace {

struct Recorded {
  const char* file;
  const char* name;  // must never change: the history contains it
};

constexpr Recorded kOfDisk[] = {
    {"queue/scheduler", "scheduler"},
    {"queue/discard_max_bytes", "discard_max_bytes"},
    {"queue/fua", "fua"},
    {"queue/io_poll", "io_poll"},
    {"queue/io_timeout", "io_timeout"},
    {"queue/iostats", "iostats"},
    {"queue/max_sectors_kb", "max_sectors_kb"},
    {"queue/nomerges", "nomerges"},
    {"queue/nr_requests", "nr_requests"},
    {"queue/read_ahead_kb", "read_ahead_kb"},
    {"queue/rotational", "rotational"},
    {"queue/rq_affinity", "rq_affinity"},
    {"queue/wbt_lat_usec", "wbt_lat_usec"},
    {"queue/write_cache", "write_cache"},
    {"cache_type", "cache_type"},       // of virtio
    {"scsi_cache_type", "cache_type"},  // of SCSI and SATA
    {"device/iopolicy", "iopolicy"},
    {"device/queue_depth", "queue_depth"},
    {"device/timeout", "timeout"},
    {"link_power_management_policy", "link_power_management_policy"},
};
constexpr Recorded kOfController[] = {{"hmb", "hmb"},
                                      {"power/pm_qos_latency_tolerance_us", "power/pm_qos_latency_tolerance_us"}};
constexpr Recorded kOfVolume[] = {
    {"md/level", "level"},
    {"md/chunk_size", "chunk_size"},
    {"md/raid_disks", "raid_disks"},
    {"md/sync_speed_max", "sync_speed_max"},
    {"queue/discard_max_bytes", "discard_max_bytes"},
    {"queue/read_ahead_kb", "read_ahead_kb"},
};
constexpr Recorded kOfHost[] = {
    {"proc/sys/kernel/osrelease", "kernel"},
    {"proc/sys/vm/dirty_background_bytes", "vm.dirty_background_bytes"},
    {"proc/sys/vm/dirty_background_ratio", "vm.dirty_background_ratio"},
    {"proc/sys/vm/dirty_bytes", "vm.dirty_bytes"},
    {"proc/sys/vm/dirty_expire_centisecs", "vm.dirty_expire_centisecs"},
    {"proc/sys/vm/dirty_ratio", "vm.dirty_ratio"},
    {"proc/sys/vm/dirty_writeback_centisecs", "vm.dirty_writeback_centisecs"},
    {"proc/sys/vm/swappiness", "vm.swappiness"},
    {"sys/module/nvme/parameters/io_queue_depth", "nvme/parameters/io_queue_depth"},
    {"sys/module/nvme/parameters/max_host_mem_size_mb", "nvme/parameters/max_host_mem_size_mb"},
    {"sys/module/nvme/parameters/poll_queues", "nvme/parameters/poll_queues"},
    {"sys/module/nvme/parameters/write_queues", "nvme/parameters/write_queues"},
    {"sys/module/nvme_core/parameters/default_ps_max_latency_us", "nvme_core/parameters/default_ps_max_latency_us"},
    {"sys/module/nvme_core/parameters/io_timeout", "nvme_core/parameters/io_timeout"},
    {"sys/module/nvme_core/parameters/max_retries", "nvme_core/parameters/max_retries"},
    {"sys/module/nvme_core/parameters/multipath", "nvme_core/parameters/multipath"},
    {"sys/module/pcie_aspm/parameters/policy", "pcie_aspm/parameters/policy"},
};

template <std::size_t kCount>
void take(const Recorded (&list)[kCount], const model::Attributes& files, model::RecordedSettings& settings,
          const std::string& prefix = "") {
  for (const auto& [file, name] : list) {
    if (util::OutsideText value = files.chosen(file); !value.empty()) {
      settings.values.emplace(prefix + name, std::move(value));
    }
  }
}

/// After a restart, dm-N may be another volume, so its own name is used.
void take_volume(const model::DiskSettings& volume, const model::DiskSettings& disk,
                 model::RecordedSettings& settings) {
  const util::OutsideText own = volume.files.text("dm/name");
  const std::string prefix = fmt::format("volume {} ", own.empty() ? volume.device.name : own.raw());
  take(kOfVolume, volume.files, settings, prefix);
  for (const std::string& member : model::names_of_volumes(disk)) {
    if (const auto sectors = volume.files.number(fmt::format("md/dev-{}/offset", member))) {
      settings.values.emplace(fmt::format("{}offset of {}", prefix, member), std::to_string(*sectors));
    }
  }
}

}  // namespace

model::RecordedSettings recorded(const model::DiskSettings& disk, const std::vector<model::DiskSettings>& volumes) {
  model::RecordedSettings settings{disk.device.name, {}};
  if (!disk.device.firmware.empty()) {
    settings.values.emplace("firmware", disk.device.firmware);
  }
  settings.values.emplace("size_bytes", std::to_string(disk.device.size_bytes));
  settings.values.emplace("logical_block_bytes", std::to_string(disk.device.logical_block_bytes));
  take(kOfDisk, disk.files, settings);
  take(kOfController, disk.controller, settings);
  constexpr std::size_t kMaxPartitions = 64;
  for (const model::PartitionSettings& partition :
       std::span(disk.partitions).first(std::min(disk.partitions.size(), kMaxPartitions))) {
    settings.values.emplace("partition " + partition.name,
                            fmt::format("{} bytes at {}", partition.size_bytes, partition.start_bytes));
  }
  for (const model::DiskSettings& volume : volumes) {
    take_volume(volume, disk, settings);
  }
  return settings;
}

model::RecordedSettings recorded(const std::string& name, const model::TimerSettings& timer) {
  if (!timer.enabled) {
    return {};
  }
  const std::string delay = timer.delay.empty() ? "" : " RandomizedDelaySec=" + timer.delay.raw();
  return {"",
          {{name, *timer.enabled ? fmt::format("enabled OnCalendar={}{}", timer.calendar.raw(), delay) : "disabled"}}};
}

model::RecordedSettings recorded(const model::Attributes& files) {
  model::RecordedSettings settings;
  take(kOfHost, files, settings);
  return settings;
}

}  // namespace ssdpulse::host
