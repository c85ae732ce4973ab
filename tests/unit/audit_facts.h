// SPDX-License-Identifier: Apache-2.0
// A made-up host for the rules of the audit: one NVMe drive with a partition, an ext4 on it, an md array of it, and a
// daemon that has measured for two days and found nothing wrong. Each test changes one thing about it.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string>

#include "daemon/advice/audit.h"

namespace ssdpulse::tests {

struct MadeUpHost {
  advice::Facts facts;

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

    facts.measured.answered = true;
    facts.measured.observed_seconds = 172800;
    advice::MeasuredDrive& drive = measured_drive();
    drive.composite_celsius = 40;
    drive.percentage_used_ratio = 0.1;
    drive.available_spare_ratio = 1;
    drive.available_spare_threshold_ratio = 0.1;
    drive.log_read_latency_effect_ratio = 1;
    drive.host_memory_preferred_bytes = 64 << 20;
    drive.host_memory_minimum_bytes = 16 << 20;
    drive.write_amplification_lower_24h = 1.1;
    measured_disk().block_size_ranks = {{512, 2}, {4096, 2}};
    measured_disk().failovers = 0;
    commits(1000, 0.1);
    discards(1e9);
  }

  model::DiskSettings& disk() { return facts.settings.disks[0]; }
  model::DiskSettings& array() { return facts.settings.arrays[0]; }
  model::MountSettings& mount() { return facts.settings.mounts[0]; }

  advice::MeasuredDevice& measured_disk(const std::string& name = "nvme0n1") { return facts.measured.devices[name]; }
  advice::MeasuredOperation& measured(model::Operation one) { return measured_disk().operations[index(one)]; }
  advice::MeasuredDrive& measured_drive() { return facts.measured.drives["nvme0"]; }
  advice::MeasuredMount& measured_mount(const util::OutsideText& mountpoint = "/data") {
    return facts.measured.mounts[util::for_label(mountpoint)];
  }
  /// A daemon that has just started, or none.
  void measured_for(std::optional<double> seconds) {
    facts.measured = {};
    facts.measured.answered = seconds.has_value();
    facts.measured.observed_seconds = seconds;
  }

  /// For the drive: this many I/Os more of an operation, with these total bytes, latencies and queue times.
  void io(model::Operation operation, double ios, double seconds, double queue_seconds, double bytes) {
    advice::MeasuredOperation& one = measured(operation);
    for (const auto& [values, sum] :
         {std::pair(&one.total_seconds, seconds), std::pair(&one.device_seconds, seconds - queue_seconds),
          std::pair(&one.queue_seconds, queue_seconds), std::pair(&one.size_bytes, bytes)}) {
      advice::add_figure(values->count, ios);
      advice::add_figure(values->sum, sum);
    }
    advice::add_figure(one.bytes, bytes);
  }
  void commits(double ios, double seconds) {
    advice::add_figure(measured_disk().commit_seconds.count, ios);
    advice::add_figure(measured_disk().commit_seconds.sum, seconds);
  }
  /// Instead of those that there are.
  void discards(double bytes) { measured(model::Operation::discard).bytes = bytes; }
  void excess(model::SpikeCause cause, double seconds) {
    advice::add_figure(spikes_of_reads().excess_seconds[index(cause)], seconds);
  }
  /// For reads. Spikes that have ended had no saturation.
  void spike_that_goes_on(model::SpikeCause cause, double seconds) {
    excess(model::SpikeCause::saturation, 0);
    spikes_of_reads().active_cause = cause;
    spikes_of_reads().pending_excess_seconds = seconds;
  }
  void amplification(double lower) {
    measured_drive().write_amplification_lower_24h = lower;
    advice::add_figure(measured(model::Operation::write).bytes, 1e12);
  }
  void burst_seconds(model::DiscardTrigger trigger, double seconds, const std::string& disk = "nvme0n1") {
    advice::add_figure(measured_disk(disk).discards[index(trigger)].burst_seconds, seconds);
  }
  void written(model::WriteClass by, double bytes) {
    advice::add_figure(measured_disk().written_bytes[index(by)], bytes);
  }

 private:
  advice::MeasuredSpikes& spikes_of_reads() { return measured_disk().spikes[model::Operation::read]; }
};

}  // namespace ssdpulse::tests
