// SPDX-License-Identifier: Apache-2.0
// NvmeDrive: an NVMe drive: its identity, what it reports, and the wear that follows from it. NvmeField: the fields of
// log pages that are exported, one for each metric, whatever page it comes from: decoders (daemon/nvme_pages) fill it
// and exporters render it, without knowing about each other. Fields of an endurance group or a cloud volume have names
// of their own, because a sum over them and the drive would count twice. Bytes written are in WriteCounters: where a
// ledger keeps them, the ledger exports them. Values only. Counters keep the drive's own unit and all 128 bits;
// everything else is in base units.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/base/outside_text.h"

namespace ssdpulse::model {

// FIELD(gauge | counter, name, unit that the name carries, name of the label, help); a counter's metric ends in _total.
// clang-format off
#define SSDPULSE_NVME_FIELDS(FIELD) \
  /* Of the drive: the standard health page */ \
  FIELD(gauge, critical_warning, "", "warning", "1 while the drive warns of this.") \
  FIELD(gauge, endurance_groups_warning, "", "warning", "1 while any endurance group of the drive warns of this.") \
  FIELD(gauge, temperature_celsius, "celsius", "sensor", "Temperature of the drive, composite or by sensor.") \
  FIELD(gauge, available_spare_ratio, "ratio", "", "Remaining spare capacity.") \
  FIELD(gauge, available_spare_threshold_ratio, "ratio", "", "Remaining spare capacity below which the drive warns.") \
  FIELD(gauge, percentage_used_ratio, "ratio", "", \
        "Share of the rated life that is used up, by the drive's own estimate; may exceed 1.") \
  FIELD(counter, data_units_read_bytes, "bytes", "", "Bytes read by hosts, rounded up to units of 512000.") \
  FIELD(counter, data_units_written_bytes, "bytes", "", "Bytes written by hosts, rounded up to units of 512000.") \
  FIELD(counter, host_commands, "", "operation", "Read and write commands completed.") \
  FIELD(counter, controller_busy_seconds, "seconds", "", "Time with commands outstanding, in whole minutes.") \
  FIELD(counter, power_cycles, "", "", "Power cycles.") \
  FIELD(counter, power_on_seconds, "seconds", "", "Time powered on, in whole hours.") \
  FIELD(counter, unsafe_shutdowns, "", "", "Power losses without a shutdown notification.") \
  FIELD(counter, media_errors, "", "", "Unrecovered data integrity errors.") \
  FIELD(counter, error_log_entries, "", "", "Entries ever added to the error log.") \
  FIELD(counter, temperature_exceeded_seconds, "seconds", "threshold", \
        "Time at or above a temperature threshold, in whole minutes.") \
  FIELD(counter, thermal_management_transitions, "", "level", "Times that the drive throttled to cool down.") \
  FIELD(counter, thermal_management_seconds, "seconds", "level", \
        "Time during which the drive throttled to cool down.") \
  /* Of the drive: the media and what it costs to keep it */ \
  FIELD(counter, media_read_bytes, "bytes", "", "Bytes read from the media, for the host and for the drive itself.") \
  FIELD(counter, media_erased_bytes, "bytes", "", "Bytes of media erased.") \
  FIELD(gauge, bad_blocks, "", "area", "Blocks of the media that are out of use.") \
  FIELD(gauge, bad_blocks_normalized_ratio, "ratio", "area", "Blocks left before too many are bad; 1: as new.") \
  FIELD(gauge, reserved_blocks, "", "state", "Blocks set aside for those that go bad.") \
  FIELD(gauge, free_blocks_ratio, "ratio", "area", "Share of blocks that are free to be written.") \
  FIELD(gauge, block_erases_min, "", "cells", "Erases of the least erased block.") \
  FIELD(gauge, block_erases_max, "", "cells", "Erases of the most erased block.") \
  FIELD(gauge, block_erases_mean, "", "cells", "Erases of the average block.") \
  FIELD(gauge, erase_cycles_remaining_ratio, "ratio", "", "Rated program and erase cycles that are left.") \
  FIELD(gauge, system_area_used_ratio, "ratio", "", "Life of the system area that is used up.") \
  FIELD(gauge, endurance_estimate_bytes, "bytes", "", "Bytes that can be written over the drive's life.") \
  FIELD(counter, program_failures, "", "area", "Failed programs of the media.") \
  FIELD(counter, erase_failures, "", "area", "Failed erases of the media.") \
  FIELD(counter, uncorrectable_reads, "", "area", "Reads of the media that error correction could not save.") \
  FIELD(counter, soft_ecc_errors, "", "", "Reads that needed more than the first level of error correction.") \
  FIELD(counter, xor_recoveries, "", "", "Reads that were rebuilt from the drive's own parity.") \
  FIELD(counter, end_to_end_errors, "", "result", "Errors of the data path inside the drive.") \
  FIELD(counter, refreshes, "", "", "Blocks rewritten to keep their data.") \
  FIELD(counter, background_operations, "", "operation", "Background operations of the drive on its media.") \
  FIELD(counter, die_failures, "", "", "Dies of the media that failed.") \
  FIELD(gauge, dies, "", "state", "Dies of the media: all, those whose failure is tolerated, those offline.") \
  FIELD(gauge, back_pressure_ratio, "ratio", "", "How much background work slows the host down.") \
  FIELD(counter, deallocate_commands, "", "", "Deallocate (trim) commands.") \
  FIELD(counter, unaligned_ios, "ios", "", "Writes that made the drive read, modify and write.") \
  FIELD(counter, command_timeouts, "", "operation", "Commands that took longer than the drive allows.") \
  FIELD(counter, thermal_throttle_events, "", "", "Times that the drive slowed down because of heat.") \
  FIELD(counter, thermal_throttle_seconds, "seconds", "", \
        "Time during which the drive slowed down because of heat, in whole minutes.") \
  FIELD(gauge, thermal_throttle_level, "", "", "How much the drive slows down because of heat; 0: not at all.") \
  FIELD(gauge, capacitor_health_ratio, "ratio", "", \
        "Charge of the power-loss protection relative to what it needs; may exceed 1.") \
  FIELD(counter, power_loss_protection_starts, "", "", "Times that the power-loss protection was needed.") \
  FIELD(counter, incomplete_shutdowns, "", "", "Shutdowns whose power-loss protection did not complete.") \
  FIELD(counter, power_state_changes, "", "", "Changes of the power state.") \
  FIELD(counter, pcie_correctable_errors, "", "", "Correctable errors of the PCI Express link.") \
  FIELD(counter, pcie_crc_errors, "", "", "Checksum errors of the PCI Express link.") \
  FIELD(counter, pcie_link_retrainings, "", "", "Retrainings of the PCI Express link.") \
  /* Flexible data placement */ \
  FIELD(gauge, fdp_reclaim_unit_bytes, "bytes", "configuration", "Nominal size of a reclaim unit.") \
  FIELD(gauge, fdp_reclaim_groups, "", "configuration", "Reclaim groups.") \
  FIELD(gauge, fdp_reclaim_unit_handles, "", "configuration", "Reclaim unit handles.") \
  FIELD(gauge, fdp_placement_identifiers, "", "configuration", "Placement identifiers that a namespace may have.") \
  FIELD(gauge, fdp_reclaim_unit_time_limit_seconds, "seconds", "configuration", \
        "Time after which the drive leaves a reclaim unit unfilled.") \
  FIELD(gauge, fdp_handle_use, "", "handle", \
        "Use of a reclaim unit handle; 0: none, 1: by the host, 2: by the controller.") \
  FIELD(counter, fdp_host_written_bytes, "bytes", "", "Bytes written by hosts while placement was on.") \
  FIELD(counter, fdp_media_written_bytes, "bytes", "", "Bytes written to the media while placement was on.") \
  FIELD(counter, fdp_media_erased_bytes, "bytes", "", "Bytes of media erased while placement was on.") \
  FIELD(gauge, fdp_events, "", "type", \
        "Placement events in the log, among its first 63 of hosts and of the controller.") \
  /* Of an endurance group */ \
  FIELD(gauge, endurance_group_warning, "", "warning", "1 while the endurance group warns of this.") \
  FIELD(gauge, endurance_group_available_spare_ratio, "ratio", "", "Remaining spare capacity.") \
  FIELD(gauge, endurance_group_available_spare_threshold_ratio, "ratio", "", \
        "Remaining spare capacity below which the group warns.") \
  FIELD(gauge, endurance_group_percentage_used_ratio, "ratio", "", \
        "Share of the rated life that is used up, by the drive's own estimate; may exceed 1.") \
  FIELD(gauge, endurance_group_endurance_estimate_bytes, "bytes", "", \
        "Bytes that can be written over the group's life.") \
  FIELD(counter, endurance_group_read_bytes, "bytes", "", \
        "Bytes read by hosts, rounded up to whole units; absent until comparison with the health page shows them.") \
  FIELD(counter, endurance_group_written_bytes, "bytes", "", \
        "Bytes written by hosts, rounded up to whole units; absent until comparison with the health page shows them.") \
  FIELD(counter, endurance_group_media_written_bytes, "bytes", "", \
        "Bytes written to the media, rounded up to whole units; absent until comparison with the health page shows " \
        "them.") \
  FIELD(counter, endurance_group_host_commands, "", "operation", "Read and write commands completed.") \
  FIELD(counter, endurance_group_media_errors, "", "", "Unrecovered data integrity errors.") \
  FIELD(counter, endurance_group_error_log_entries, "", "", "Entries ever added to the error log.") \
  FIELD(gauge, endurance_group_capacity_bytes, "bytes", "", "Capacity.") \
  FIELD(gauge, endurance_group_unallocated_bytes, "bytes", "", "Capacity that is not allocated to any namespace.") \
  /* Of a cloud volume */ \
  FIELD(counter, volume_operations, "", "operation", "Reads and writes completed.") \
  FIELD(counter, volume_bytes, "bytes", "operation", "Bytes read and written.") \
  FIELD(counter, volume_io_seconds, "seconds", "operation", "Time spent on reads and writes, summed.") \
  FIELD(counter, volume_limit_exceeded_seconds, "seconds", "limit", \
        "Time during which hosts requested more than the limit allows.") \
  FIELD(gauge, volume_queue_length, "", "", "Reads and writes outstanding.") \
  FIELD(counter, volume_reads_by_latency, "", "up_to_seconds", \
        "Reads by latency; each is counted once, at the smallest bound that it does not exceed.") \
  FIELD(counter, volume_writes_by_latency, "", "up_to_seconds", \
        "Writes by latency; each is counted once, at the smallest bound that it does not exceed.")
// clang-format on

/// In the order of kNvmeFieldDescriptions.
enum class NvmeField : std::uint8_t {
#define SSDPULSE_FIELD(kind, name, unit, label, help) name,
  SSDPULSE_NVME_FIELDS(SSDPULSE_FIELD)
#undef SSDPULSE_FIELD
};

struct NvmeFieldDescription {
  std::string_view metric;  // whole name; counters end in _total
  bool counter;
  std::string_view help;
  std::string_view unit;   // base unit that the name carries, or empty
  std::string_view label;  // name of the one label other than `controller` and `endurance_group`, or empty
};

#define SSDPULSE_METRIC_gauge(name) "ssdpulse_nvme_" #name, false
#define SSDPULSE_METRIC_counter(name) "ssdpulse_nvme_" #name "_total", true
#define SSDPULSE_FIELD(kind, name, unit, label, help) \
  NvmeFieldDescription{SSDPULSE_METRIC_##kind(name), help, unit, label},
inline constexpr std::array kNvmeFieldDescriptions{SSDPULSE_NVME_FIELDS(SSDPULSE_FIELD)};
#undef SSDPULSE_FIELD
#undef SSDPULSE_METRIC_gauge
#undef SSDPULSE_METRIC_counter
#undef SSDPULSE_NVME_FIELDS
inline constexpr std::size_t kNvmeFields = kNvmeFieldDescriptions.size();

/// One value of one field, in base units. Integers beyond 2^53 are rounded to the nearest double here, once.
struct NvmeValue {
  NvmeField field;
  std::string label;  // value of the description's label
  double value;
  std::uint16_t endurance_group = 0;  // set by the caller for a page of a group; 0: of the whole drive, no label
};

/// Whether both are values of one series.
inline bool same_series(const NvmeValue& a, const NvmeValue& b) {
  return a.field == b.field && a.label == b.label && a.endurance_group == b.endurance_group;
}

/// A namespace of the drive that this host sees as a block device.
struct NvmeNamespace {
  std::string device;                          // nvme0n1: the head, never a path
  std::uint32_t nsid = 0;                      // 1..FFFFFFFEh
  std::uint16_t endurance_group = 0;           // Identify Namespace bytes 103:102; 0: none
  std::uint32_t write_granularity_blocks = 0;  // NPWG, NPWA: preferred, in logical blocks; 0: unknown
  std::uint32_t write_alignment_blocks = 0;
  std::optional<double> used_share = {};  // NUSE of NSZE: blocks in use, 0 to 1; many drives always report 1
  /// Bytes of a logical block -> RP of its format: 0 best, 3 degraded. Only formats without metadata; empty if the
  /// format in use has metadata.
  std::map<std::uint32_t, std::uint8_t> block_sizes = {};
  bool operator==(const NvmeNamespace&) const = default;
};

/// What the drive is and can do, as it reports: sysfs and the Identify data structures (NVM Express Base 2.x, 5.1.13).
struct NvmeIdentity {
  std::string controller;  // nvme0: the lowest live one of its subsystem
  util::OutsideText subsystem_nqn;
  std::string transport;  // pcie, tcp, rdma, fc, loop
  std::uint16_t vendor_id = 0;
  std::uint16_t subsystem_vendor_id = 0;
  util::OutsideText serial;  // leading and trailing blanks removed, as of the next two
  util::OutsideText model;
  util::OutsideText firmware;
  std::uint32_t version = 0;                // VER, e.g. 0x10400
  std::uint32_t controller_attributes = 0;  // CTRATT: bit 4 endurance groups, bit 9 UUID list, bit 19 FDP
  std::uint16_t endurance_group_max = 0;    // ENDGIDMAX
  std::uint16_t admin_commands = 0;         // OACS: bit 5 directives, which include streams
  std::vector<std::uint16_t> endurance_groups;
  std::vector<std::array<std::uint8_t, 16>> uuids;           // UUID list; the UUID index of the first is 1
  std::array<std::uint8_t, 1024> vendor_specific{};          // Identify Controller bytes 4095:3072
  std::optional<std::uint64_t> host_memory_preferred_bytes;  // HMPRE: for its own use; 0: it requests none
  std::optional<std::uint64_t> host_memory_minimum_bytes;    // HMMIN
  std::vector<NvmeNamespace> namespaces;
};

/// Drives that write less the better the data compresses: only their media may receive less than the host writes.
inline bool compresses(std::uint16_t vendor_id, const util::OutsideText& model) {
  constexpr std::uint16_t kScaleFlux = 0xCC53;
  return vendor_id == kScaleFlux || model.contains("ScaleFlux") || model.contains("CSD-");
}

/// How a drive rounds a counter of whole units.
enum class Rounding : std::uint8_t {
  exact,    // the true value, in units of one byte
  up,       // units begun
  unknown,  // off by less than one unit, either way
};

using Uint128 = unsigned __int128;

/// More than any drive writes in that time, to its media or for the host. The rate is more than four lanes of PCI
/// Express 7 carry. A fraction of a second counts as a whole one, because two counters of a sample are not read at the
/// same time.
constexpr Uint128 most_bytes_in(std::chrono::nanoseconds time) {
  constexpr Uint128 kMaxBytesPerSecond = 64'000'000'000;
  const auto whole = std::chrono::ceil<std::chrono::seconds>(time).count();
  return kMaxBytesPerSecond * static_cast<Uint128>(whole < 1 ? 1 : whole);
}

/// A counter of bytes as the drive keeps it: `count` units of `unit_bytes` each.
struct ByteCounter {
  Uint128 count = 0;
  std::uint64_t unit_bytes = 1;  // 0: the unit is not known (see daemon/nvme_pages/drive_reading.h)
  Rounding rounding = Rounding::exact;
};

/// What one page reports about writes. A counter that the drive does not report (0 where a standard says so) is absent.
struct WriteCounters {
  std::optional<ByteCounter> host;   // written by the host
  std::optional<ByteCounter> media;  // written to the media: host, garbage collection, refresh, metadata
};

/// The best estimate of one window, and the bounds that hold whatever the counters' granularity hid.
struct WriteAmplificationRatio {
  std::string window;          // 5m, 1h, 24h, 7d, lifetime
  double covered_seconds = 0;  // of the window; 0 for lifetime
  double age_seconds = 0;      // of the window's end at the newest reading: more than 0 where counters lag
  double ratio = 0;
  double lower = 0;
  double upper = 0;
};

/// Seconds until the drive's rated endurance is used up, at the rate of the window.
struct LifeRemaining {
  std::string basis;  // percentage_used, endurance_estimate
  double window_seconds = 0;
  double seconds = 0;
};

/// What is known about a drive's write amplification, and from which source.
struct WriteAmplification {
  std::string source;                        // fdp, ocp, a vendor page, endurance_group; empty: none
  std::string reason;                        // why no better source, or why none
  std::optional<double> host_written_bytes;  // cumulative, across resets of the drive's counters
  std::optional<double> media_written_bytes;
  double idle_media_written_bytes = 0;             // written to the media while the host wrote nothing
  std::optional<double> host_written_drift_bytes;  // the drive's host counter less the block layer's
  std::optional<double> host_written_drift_lower_bytes;
  std::optional<double> host_written_drift_upper_bytes;
  std::chrono::system_clock::time_point since;
  std::uint64_t epochs = 0;                                      // how often the counters were reset
  double host_doubt_bytes = 0;                                   // how far a difference of bytes written may be off,
  double media_doubt_bytes = 0;                                  // because counters count whole units
  std::optional<std::chrono::steady_clock::time_point> read_at;  // of the newest reading of counters that was accepted
  std::vector<WriteAmplificationRatio> ratios;                   // those whose bounds are narrow enough
  std::string withheld;  // why ratios with narrow bounds are not among them; empty: all are
  std::vector<LifeRemaining> life_remaining;
};

/// How polling a drive goes.
struct NvmePolling {
  bool up = false;
  std::string reason;       // why not
  std::uint64_t polls = 0;  // begun
  /// By kind: refused, timeout, short, garbage, gone, impossible (a page that cannot be true), unconfirmed (a page that
  /// waits for another reading), ...
  std::map<std::string, std::uint64_t> failures;
  std::string doubted;                               // the last impossible or unconfirmed page, and why
  std::optional<double> last_success_seconds;        // since the epoch
  double last_duration_seconds = 0;                  // of all the commands of one poll
  double interval_seconds = 0;                       // between polls: longer than configured where reading logs hurts
  std::map<std::string, std::string> refused_pages;  // pages that are not requested again, and why
  std::optional<std::chrono::steady_clock::time_point> read_at;  // last_success_seconds by the monotonic clock
  std::optional<double> read_effect_ratio;  // p99 of reads and writes near a log read, over that of the others
};

struct NvmeDrive {
  std::shared_ptr<const NvmeIdentity> identity;
  std::vector<NvmeValue> values;  // of the newest successful reading of each page
  WriteAmplification write_amplification;
  NvmePolling polling;
};

}  // namespace ssdpulse::model
