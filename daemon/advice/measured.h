// SPDX-License-Identifier: Apache-2.0
// Measured: what the running daemon has measured, as far as rules weigh it. The daemon's own audit takes it from the
// snapshot (measure()), `ssdpulse audit` from the JSON of /api/v1/measured.
//
// Values only. Figures count since the daemon's start, in base units: bytes, seconds, 1. One that is not measured is
// absent, never 0. Each type names its members once, in visit(), for whoever writes or reads them all: a new member is
// a line there.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "daemon/base/outside_text.h"
#include "daemon/base/result.h"
#include "daemon/model/block_io.h"
#include "daemon/model/discard_values.h"
#include "daemon/model/finding.h"
#include "daemon/model/snapshot.h"
#include "daemon/model/spike_cause.h"
#include "daemon/model/tenant_io.h"
#include "daemon/model/write_details.h"

namespace ssdpulse::advice {

inline constexpr double kSecondsPerDay = 86400;

using Figure = std::optional<double>;

/// Of the values of a histogram.
struct Distribution {
  Figure count;
  Figure sum;
  bool operator==(const Distribution&) const = default;

  static void visit(auto& self, const auto& field) {
    field("count", self.count);
    field("sum", self.sum);
  }
};

/// One operation of a device.
struct MeasuredOperation {
  Figure bytes;             // completed
  Figure sequential_bytes;  // of reads and writes alone
  Distribution size_bytes;
  Distribution queue_seconds;   // before the drive
  Distribution device_seconds;  // in the drive
  Distribution total_seconds;
  bool operator==(const MeasuredOperation&) const = default;

  static void visit(auto& self, const auto& field) {
    field("bytes", self.bytes);
    field("sequential_bytes", self.sequential_bytes);
    field("size_bytes", self.size_bytes);
    field("queue_seconds", self.queue_seconds);
    field("device_seconds", self.device_seconds);
    field("total_seconds", self.total_seconds);
  }
};

/// The latency spikes of one operation of a device.
struct MeasuredSpikes {
  std::array<Figure, model::kSpikeCauses> excess_seconds;  // waited beyond the usual, in those that are over
  Figure pending_excess_seconds;                           // in those that go on, or whose cause is not final
  std::optional<model::SpikeCause> active_cause;           // the best so far of one that goes on
  bool operator==(const MeasuredSpikes&) const = default;

  static void visit(auto& self, const auto& field) {
    field("excess_seconds", self.excess_seconds, model::kSpikeCauseNames);
    field("pending_excess_seconds", self.pending_excess_seconds);
    field("active_cause", self.active_cause, model::kSpikeCauseNames);
  }
};

/// The bursts of discards of one trigger on a device.
struct MeasuredDiscards {
  Figure burst_seconds;
  Figure burst_bytes;
  bool operator==(const MeasuredDiscards&) const = default;

  static void visit(auto& self, const auto& field) {
    field("burst_seconds", self.burst_seconds);
    field("burst_bytes", self.burst_bytes);
  }
};

struct MeasuredDevice {
  bool unseen = false;     // none of its requests is seen: see model::Unseen
  std::string controller;  // under which the daemon reports the drive; empty: none is known
  std::array<MeasuredOperation, model::kOperations> operations;
  Distribution commit_seconds;
  // Of all operations together:
  Figure queue_full_seconds;
  Figure timeouts;
  Figure failovers;
  Figure unstamped_ios;
  // Of issued writes:
  std::array<Figure, model::kWriteClasses> written_bytes;
  Figure misaligned_bytes;
  model::ByOperation<MeasuredSpikes, model::kSpikeOperations> spikes;
  std::array<MeasuredDiscards, model::kDiscardTriggers> discards;
  std::array<Figure, model::kIoPaths> path_ios;
  std::map<std::uint32_t, double> block_size_ranks;  // by bytes of a block; 0: best, 3: degraded
  bool operator==(const MeasuredDevice&) const = default;

  static void visit(auto& self, const auto& field) {
    field("unseen", self.unseen);
    field("controller", self.controller);
    field("operations", self.operations, model::kRequestNames);
    field("commit_seconds", self.commit_seconds);
    field("queue_full_seconds", self.queue_full_seconds);
    field("timeouts", self.timeouts);
    field("failovers", self.failovers);
    field("unstamped_ios", self.unstamped_ios);
    field("written_bytes", self.written_bytes, model::kWriteClassNames);
    field("misaligned_bytes", self.misaligned_bytes);
    field("spikes", self.spikes, model::kSpikeOperationNames);
    field("discards", self.discards, model::kDiscardTriggerNames);
    field("path_ios", self.path_ios, model::kIoPathNames);
    field("block_size_ranks", self.block_size_ranks);
  }

  [[nodiscard]] const MeasuredOperation& operation(model::Operation one) const { return operations[index(one)]; }
  [[nodiscard]] Figure written_bytes_by(model::WriteClass one) const { return written_bytes[index(one)]; }
  /// By all classes together.
  [[nodiscard]] Figure all_written_bytes() const;
};

/// An endurance group of an NVMe drive.
struct MeasuredGroup {
  Figure available_spare_ratio;
  Figure available_spare_threshold_ratio;
  Figure percentage_used_ratio;
  bool operator==(const MeasuredGroup&) const = default;

  static void visit(auto& self, const auto& field) {
    field("available_spare_ratio", self.available_spare_ratio);
    field("available_spare_threshold_ratio", self.available_spare_threshold_ratio);
    field("percentage_used_ratio", self.percentage_used_ratio);
  }
};

inline constexpr auto kDriveWarningNames = [] {
  std::array<std::string_view, model::kDriveWarnings.size()> names;
  for (std::size_t i = 0; i < names.size(); ++i) {
    names[i] = model::kDriveWarnings[i].label;
  }
  return names;
}();

/// An NVMe drive, by its log pages.
struct MeasuredDrive {
  std::array<Figure, kDriveWarningNames.size()> warnings;  // more than 0: it warns, or one of its groups does
  Figure composite_celsius;
  Figure available_spare_ratio;
  Figure available_spare_threshold_ratio;
  Figure percentage_used_ratio;
  Figure media_errors;
  Figure power_on_seconds;            // in its life, as the next two
  Figure thermal_management_seconds;  // of all levels
  Figure thermal_throttle_seconds;
  Figure log_read_latency_effect_ratio;
  Figure host_memory_preferred_bytes;
  Figure host_memory_minimum_bytes;
  Figure write_amplification_lower_7d;  // the certain lower bound over that time, like the next
  Figure write_amplification_lower_24h;
  std::map<std::uint32_t, MeasuredGroup> endurance_groups;  // by number, from 1
  bool operator==(const MeasuredDrive&) const = default;

  static void visit(auto& self, const auto& field) {
    field("warnings", self.warnings, kDriveWarningNames);
    field("composite_celsius", self.composite_celsius);
    field("available_spare_ratio", self.available_spare_ratio);
    field("available_spare_threshold_ratio", self.available_spare_threshold_ratio);
    field("percentage_used_ratio", self.percentage_used_ratio);
    field("media_errors", self.media_errors);
    field("power_on_seconds", self.power_on_seconds);
    field("thermal_management_seconds", self.thermal_management_seconds);
    field("thermal_throttle_seconds", self.thermal_throttle_seconds);
    field("log_read_latency_effect_ratio", self.log_read_latency_effect_ratio);
    field("host_memory_preferred_bytes", self.host_memory_preferred_bytes);
    field("host_memory_minimum_bytes", self.host_memory_minimum_bytes);
    field("write_amplification_lower_7d", self.write_amplification_lower_7d);
    field("write_amplification_lower_24h", self.write_amplification_lower_24h);
    field("endurance_groups", self.endurance_groups);
  }
};

struct MeasuredMount {
  Figure available_bytes;
  Figure filling_bytes_per_second;
  std::array<Figure, model::kDiscardTriggers> discarded_bytes;
  bool operator==(const MeasuredMount&) const = default;

  static void visit(auto& self, const auto& field) {
    field("available_bytes", self.available_bytes);
    field("filling_bytes_per_second", self.filling_bytes_per_second);
    field("discarded_bytes", self.discarded_bytes, model::kDiscardTriggerNames);
  }
};

struct Measured {
  bool answered = false;        // false: no daemon has answered, and all else is absent
  Figure observed_seconds;      // for how long the daemon has been counting
  bool tenant_limits = false;   // a limit on I/O is known of a control group that has sent some, or of one above it
  Figure cgroup_limit_seconds;  // that somebody waited at such a limit
  std::map<std::string, MeasuredDevice> devices;      // by name
  std::map<std::string, MeasuredDrive> drives;        // by controller
  std::map<util::OutsideText, MeasuredMount> mounts;  // by mount point, as util::for_label() writes it
  bool operator==(const Measured&) const = default;

  static void visit(auto& self, const auto& field) {
    field("observed_seconds", self.observed_seconds);
    field("tenant_limits", self.tenant_limits);
    field("cgroup_limit_seconds", self.cgroup_limit_seconds);
    field("devices", self.devices);
    field("drives", self.drives);
    field("mounts", self.mounts);
  }

  /// One without any figure if it is not known. All are valid as long as this.
  [[nodiscard]] const MeasuredDevice& device(const std::string& name) const;
  [[nodiscard]] const MeasuredDrive& drive(const std::string& controller) const;
  [[nodiscard]] const MeasuredMount& mount(const util::OutsideText& mountpoint) const;

  /// The total divided by the days of observed_seconds; nothing within the first second.
  [[nodiscard]] Figure per_day(Figure total) const;
};

/// What rules weigh of a snapshot.
Measured measure(const model::Snapshot& snapshot);

/// Adds what is known and finite.
void add_figure(Figure& total, Figure one);

/// The answer of /api/v1/measured: an object with the names of Measured::visit() and below; what is absent is left out,
/// and what a reader does not know is ignored.
std::string measured_json(const Measured& measured);

/// Whoever sent the text is not trusted: it has at most kMaxMeasuredBytes, and at most kMaxMeasuredEntries devices,
/// drives or mounts; names of devices, drives and causes are plain (util::is_plain_name()). The error says which field
/// is wrong, in words of ours.
inline constexpr std::size_t kMaxMeasuredBytes = 16U << 20U;
inline constexpr std::size_t kMaxMeasuredEntries = 4096;
util::Result<Measured> parse_measured(std::string_view json);

}  // namespace ssdpulse::advice
