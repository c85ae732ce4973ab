// SPDX-License-Identifier: Apache-2.0
// A made-up host for the rules of the audit: one NVMe drive with a partition, an ext4 on it, an md array of it, and a
// daemon that has measured for two days and found nothing wrong. Each test changes one thing about it.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string>

#include "daemon/audit/audit.h"

namespace ssdpulse::tests {

struct MadeUpHost {
  audit::Facts facts;
  std::string page;  // of metrics

  MadeUpHost() {
    facts.enough = std::chrono::hours(6);  // in a week; less than what was measured in two days
    model::DiskSettings disk;
    disk.device.name = "nvme0n1";
    disk.device.transport = "nvme";
    disk.device.model = "Big SSD 2000";
    disk.device.firmware = "FW1.2";
    disk.device.size_bytes = 1'000'000'000'000;
    disk.device.scheduler = "none";
    disk.device.discard = true;
    disk.device.write_back_cache = true;
    disk.device.write_granularity_bytes = 4096;
    disk.device.paths = {{"nvme0n1", 4, 1023, 1}};
    disk.controller_name = "nvme0";
    for (const auto& [file, text] : std::vector<std::pair<const char*, const char*>>{
             {"queue/scheduler", "[none] mq-deadline kyber"},
             {"queue/nr_requests", "1023"},
             {"mq/0/nr_tags", "1023"},
             {"queue/nomerges", "0"},
             {"queue/read_ahead_kb", "128"},
             {"queue/wbt_lat_usec", "2000"},
             {"queue/rotational", "0"},
             {"queue/write_cache", "write back"},
             {"queue/max_sectors_kb", "1280"},
             {"queue/max_hw_sectors_kb", "2048"},
             {"queue/iostats", "1"},
             {"queue/io_timeout", "30000"},
             {"queue/discard_max_bytes", "134217728"},
             {"queue/discard_granularity", "4096"},
             {"queue/zoned", "none"},
         }) {
      disk.files.set(file, text);
    }
    for (const char* end : {"current", "max"}) {
      disk.controller.set(fmt::format("device/{}_link_speed", end), "16.0 GT/s PCIe");
      disk.controller.set(fmt::format("device/{}_link_width", end), "4");
    }
    disk.partitions = {{"nvme0n1p1", 1 << 20, 900'000'000'000}};
    facts.settings.disks.push_back(disk);

    model::DiskSettings array;
    array.device.name = "md0";
    array.disks = {"nvme0n1"};
    array.files.set("md/level", "raid1");
    array.files.set("md/chunk_size", "0");
    array.files.set("md/sync_action", "idle");
    array.files.set("md/sync_speed_max", "200000 (system)");
    array.files.set("md/raid_disks", "3");
    array.files.set("md/dev-nvme0n1p1/offset", "2048");
    array.files.set("queue/discard_max_bytes", "134217728");
    facts.settings.arrays.push_back(array);

    facts.settings.mounts.push_back({"/data", "ext4", {"rw", "relatime"}, {"nvme0n1p1"}, {"nvme0n1"}, 0.5});
    for (const auto& [file, text] : std::vector<std::pair<const char*, const char*>>{
             {"proc/sys/kernel/osrelease", "6.12.48"},
             {"proc/sys/vm/dirty_ratio", "20"},
             {"proc/sys/vm/dirty_bytes", "0"},
             {"proc/sys/vm/dirty_background_ratio", "10"},
             {"proc/sys/vm/dirty_background_bytes", "0"},
             {"proc/sys/vm/swappiness", "60"},
             {"sys/module/nvme/parameters/max_host_mem_size_mb", "128"},
         }) {
      facts.settings.files.set(file, text);
    }
    facts.settings.uptime_seconds = 172800;
    facts.settings.memory_bytes = std::uint64_t{8} << 30U;
    facts.settings.cpus = 4;
    facts.settings.fstrim = {true, "weekly", "100min"};

    page =
        "# HELP x\n"
        "process_start_time_seconds 1000000\n"
        "ssdpulse_snapshot_timestamp_seconds 1172800\n"
        "ssdpulse_nvme_temperature_celsius{controller=\"nvme0\",sensor=\"composite\"} 40\n"
        "ssdpulse_nvme_percentage_used_ratio{controller=\"nvme0\"} 0.1\n"
        "ssdpulse_nvme_available_spare_ratio{controller=\"nvme0\"} 1\n"
        "ssdpulse_nvme_available_spare_threshold_ratio{controller=\"nvme0\"} 0.1\n"
        "ssdpulse_nvme_log_read_latency_effect_ratio{controller=\"nvme0\"} 1\n"
        "ssdpulse_nvme_block_size_rank{device=\"nvme0n1\",controller=\"nvme0\",block_bytes=\"512\"} 2\n"
        "ssdpulse_nvme_block_size_rank{device=\"nvme0n1\",controller=\"nvme0\",block_bytes=\"4096\"} 2\n"
        "ssdpulse_nvme_host_memory_buffer_bytes{controller=\"nvme0\",amount=\"preferred\"} 67108864\n"
        "ssdpulse_nvme_host_memory_buffer_bytes{controller=\"nvme0\",amount=\"minimum\"} 16777216\n"
        "ssdpulse_write_amplification_lower_ratio{controller=\"nvme0\",window=\"24h\"} 1.1\n";
    io("commit", 1000, 0.1, 0, 0);
    discards(1e9);
    metric("ssdpulse_io_requeues_total", "device=\"nvme0n1\",operation=\"read\",reason=\"failover\"", 0);
  }

  model::DiskSettings& disk() { return facts.settings.disks[0]; }
  model::DiskSettings& array() { return facts.settings.arrays[0]; }
  model::MountSettings& mount() { return facts.settings.mounts[0]; }

  void metric(const std::string& name, const std::string& labels, double value) {
    page += fmt::format("{}{{{}}} {}\n", name, labels, value);
  }
  /// For the drive: this many I/Os of an operation, with these total bytes, latencies and queue times.
  void io(const std::string& operation, double ios, double seconds, double queue_seconds, double bytes) {
    const std::string labels = fmt::format("device=\"nvme0n1\",operation=\"{}\"", operation);
    for (const auto& [name, sum] :
         std::vector<std::pair<const char*, double>>{{"ssdpulse_io_latency_seconds", seconds},
                                                     {"ssdpulse_io_device_latency_seconds", seconds - queue_seconds},
                                                     {"ssdpulse_io_queue_latency_seconds", queue_seconds},
                                                     {"ssdpulse_io_size_bytes", bytes}}) {
      metric(std::string(name) + "_count", labels, ios);
      metric(std::string(name) + "_sum", labels, sum);
    }
    metric("ssdpulse_io_bytes_total", labels, bytes);
  }
  /// Instead of those that there are.
  void discards(double bytes) {
    forget("ssdpulse_io_bytes_total{device=\"nvme0n1\",operation=\"discard\"");
    metric("ssdpulse_io_bytes_total", "device=\"nvme0n1\",operation=\"discard\"", bytes);
  }
  void excess(const std::string& cause, double seconds) {
    metric("ssdpulse_latency_excess_seconds_total",
           fmt::format("device=\"nvme0n1\",operation=\"read\",cause=\"{}\"", cause), seconds);
  }
  /// For reads. Spikes that have ended had no saturation.
  void spike_that_goes_on(const std::string& cause, double seconds) {
    excess("saturation", 0);
    metric("ssdpulse_latency_spike_active", fmt::format("device=\"nvme0n1\",operation=\"read\",cause=\"{}\"", cause),
           1);
    metric("ssdpulse_latency_spike_pending_excess_seconds", "device=\"nvme0n1\",operation=\"read\"", seconds);
  }
  void amplification(double lower) {
    const auto at = page.find("ssdpulse_write_amplification_lower_ratio");
    page.erase(at, page.find('\n', at) + 1 - at);
    metric("ssdpulse_write_amplification_lower_ratio", "controller=\"nvme0\",window=\"24h\"", lower);
    metric("ssdpulse_io_bytes_total", "device=\"nvme0n1\",operation=\"write\"", 1e12);
  }
  void forget(const std::string& metric_name) {
    for (auto at = page.find(metric_name); at != std::string::npos; at = page.find(metric_name)) {
      page.erase(at, page.find('\n', at) + 1 - at);
    }
  }

  [[nodiscard]] audit::Facts gathered() const {
    audit::Facts all = facts;
    all.measured = audit::Measurements::parse(page);
    return all;
  }
};

}  // namespace ssdpulse::tests
