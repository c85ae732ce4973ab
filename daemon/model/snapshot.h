// SPDX-License-Identifier: Apache-2.0
// Snapshot: the state of the host at one instant, and the only thing that exporters see. It is immutable once published
// and shared by pointer: readers on any thread, no locks. Counters are cumulative, in base units or in the unit that
// the name says.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/model/block_io.h"
#include "daemon/model/device.h"
#include "daemon/model/discard_values.h"
#include "daemon/model/finding.h"
#include "daemon/model/host_signals.h"
#include "daemon/model/kernel_programs.h"
#include "daemon/model/latency_spike.h"
#include "daemon/model/nvme_drive.h"
#include "daemon/model/tenant_io.h"
#include "daemon/model/volume_io.h"
#include "daemon/model/write_details.h"

namespace ssdpulse::model {

using WallTime = std::chrono::system_clock::time_point;

struct FlashFigures;    // flash_values.h
struct DeviceInterval;  // device_interval.h
struct SiblingFigures;  // sibling_latency.h

/// One operation class on one device.
struct OperationIo {
  std::uint64_t issues = 0;                // first issues
  std::uint64_t completions = 0;           // final completions of issued requests, including untimed ones
  std::uint64_t untimed = 0;               // those whose issue was skipped to spare the host's CPUs
  std::uint64_t bytes = 0;                 // sum of nr_bytes over all completions, including partial ones
  std::uint64_t unissued_completions = 0;  // requests that ended without ever reaching the driver (flush parents, ...)
  std::uint64_t sequential_bytes = 0;      // of I/Os that begin where an earlier I/O of the same operation ended
  std::uint64_t queue_full_ns = 0;         // time in which a request waited for a tag of the device
  std::int64_t in_flight = 0;              // issued, not yet completed
  std::array<std::uint64_t, kRequeueReasons> requeues{};
  std::array<std::uint64_t, kIoErrors> errors{};
  std::array<LatencyHistogram, kDurings> device_latency;  // last issue to final completion; by interference
  LatencyHistogram queue_latency;                         // allocation to first issue
  LatencyHistogram total_latency;                         // allocation to final completion
  SizeHistogram size;                                     // of I/Os that ended
  bool active = false;                                    // anything was ever counted; otherwise there are no series
};

/// Everything measured in the block layer for one device.
struct DeviceIo {
  std::array<OperationIo, kOperations> operations;
  /// Total latency of commits, whatever stages each went through: flush sequences from the allocation of their parent
  /// to its end, and FUA writes. What a caller of fsync waits for; data-bearing ones are writes above as well.
  LatencyHistogram commit_latency;
  std::array<std::uint64_t, kLosses> losses{};
  WriteDetails writes;
  WallTime since;  // when counting began: created_timestamp of the series

  [[nodiscard]] const OperationIo& operation(Operation op) const { return operations[index(op)]; }
};

/// Our counts less the kernel's diskstats, once both could be compared while idle; see daemon/block/accounting_drift.h.
struct AccountingDrift {
  std::array<std::optional<std::int64_t>, kOperations> ios;  // read, write, discard and flush only
};

/// The kernel's own count of what is in flight (sysfs inflight), by direction: discards and write zeroes are writes,
/// flushes and passthrough are in neither. Summed over the paths of a multipath head.
struct KernelInFlight {
  std::int64_t reads = 0;
  std::int64_t writes = 0;
};

/// How busy a device is, by the kernel's account (io_ticks).
struct Utilisation {
  double busy_seconds = 0;           // cumulative: in which anything was in flight
  std::optional<double> busy_ratio;  // of the time between the last two readings, some seconds; 0..1
};

/// The state of a device of which no request is seen, although it does I/O or may do so.
struct Unseen {
  std::optional<std::uint64_t> kernel_ios;  // that the kernel counted meanwhile; absent: too few, or it does not count
  bool has_requests = true;                 // see Device; true: the kernel's count is what shows it
};

/// The text about such a device, after its name.
constexpr std::string_view unseen_text(bool has_requests) {
  return has_requests ? "the kernel counts its I/O, but no request of it is seen"
                      : "its driver takes I/O without requests, by which drives are measured";
}

struct DeviceSnapshot {
  std::shared_ptr<const Device> device;
  std::shared_ptr<const DeviceIo> io;  // null while nothing of the device was measured yet, or it is unseen
  AccountingDrift drift;
  DiscardBurstsByTrigger discards{};
  ByOperation<SpikeFigures, kSpikeOperations> spikes;
  std::optional<WriteHintPath> hint_path = {};  // absent until it is known
  /// Read only if something is in flight by our count and nothing completed since the last tick. Also absent if the
  /// kernel keeps no count (iostats is 0) or contradicts itself.
  std::optional<KernelInFlight> kernel_in_flight = {};
  std::optional<Utilisation> utilisation = {};  // absent if the kernel keeps no count (iostats is 0)
  DepthHistogram depth = {};
  std::shared_ptr<const DeviceTenants> tenants = {};  // null where the kernel side does not report whose I/O it is
  std::optional<Unseen> unseen = {};
  std::shared_ptr<const DeviceInterval> interval = {};  // since the snapshot before; null: not known
};

/// One of our BPF programs, as the kernel accounts it.
struct ProgramStats {
  std::string name;
  std::optional<std::uint64_t> recursion_misses;  // runs that the kernel skipped; absent where it does not report them
  std::optional<std::uint64_t> runs;              // only while the host has kernel.bpf_stats_enabled on
  std::optional<std::uint64_t> run_ns;
};

/// The health of one source (inventory, block, ...).
struct SourceStatus {
  std::string name;
  bool up = false;
  std::string reason;                           // why not; empty when up
  std::map<std::string, std::uint64_t> errors;  // by kind, cumulative
  std::string controller = {};                  // if this is the source's view of one NVMe drive
  std::string remedy = {};                      // what to do, where the source knows; empty when up
  bool starting = false;                        // not up yet, and nothing is wrong
};

/// Bytes of kernel memory that the maps occupy, by what they hold.
struct KernelMemory {
  std::map<std::string, std::uint64_t> bytes_by_use;  // cells, slots, tables, attribution, samples
};

/// The daemon itself, from /proc/self.
struct ProcessStats {
  double cpu_seconds = 0;
  std::uint64_t resident_bytes = 0;
  std::uint64_t virtual_bytes = 0;
  std::uint64_t open_fds = 0;
  std::uint64_t max_fds = 0;
  double start_time_seconds = 0;  // since the epoch
  std::uint64_t threads = 0;
};

/// What is kept on disk.
struct HistoryFigures {
  /// By table, and by what became of a row.
  using Rows = std::map<std::pair<std::string, std::string_view>, std::uint64_t>;
  Rows rows;                                          // received by this process, without waiting ones
  std::map<std::string, std::uint64_t> rows_waiting;  // for the disk, by table
  Rows rows_deleted;                                  // by this process; see history::Removal
  std::map<std::string, std::uint64_t> rows_lost;     // found damaged in the last 24 hours, by table
  std::uint64_t bytes_on_disk = 0;
  std::optional<WallTime> minutes_from = {};  // the oldest minute of a device that is kept; absent: none is
  std::optional<WallTime> hours_from = {};    // the oldest hour
};

/// The configuration in force, and the outcome of the last attempt to load another.
struct ConfigurationFigures {
  bool last_reload_successful = true;
  WallTime loaded_at;  // the one in force
};

/// The web server. Cumulative since the daemon's start, except `connections`.
struct WebFigures {
  std::uint64_t answers = 0;            // sent completely, whatever their status
  std::uint64_t refused_requests = 0;   // of those: the permitted number was already being answered
  std::uint64_t refused_logins = 0;     // the permitted number of passwords was already waiting to be checked
  std::uint64_t refused_unread = 0;     // too many bytes were waiting to be read
  std::uint64_t refused_users = 0;      // no or wrong credentials
  std::uint64_t cut_connections = 0;    // reset at a deadline
  std::uint64_t accept_errors = 0;      // out of file descriptors or memory
  std::uint64_t failed_handshakes = 0;  // connections that ended before their TLS handshake did
  std::uint64_t connections = 0;        // open now
};

struct Snapshot {
  std::uint64_t number = 0;  // counts up by one; exporters cache by it
  WallTime taken_at;
  std::uint64_t missed_ticks = 0;  // ticks that began more than half an interval late, cumulative

  std::vector<DeviceSnapshot> devices;                       // measured ones only, sorted by name
  std::vector<std::string> devices_left_out = {};            // of these: the kernel's tables have no room for them
  std::vector<std::shared_ptr<const BioIo>> bios = {};       // of volumes and of what lies below; sorted by device
  std::map<std::string, VolumeDrift> volume_drift = {};      // by volume
  std::shared_ptr<const VolumeFigures> volume_figures = {};  // null: nothing is measured, or only for some seconds
  std::vector<std::string> volumes_left_out = {};            // as devices_left_out
  std::shared_ptr<const SiblingFigures> siblings = {};       // null: no devices that ought to be alike
  std::vector<Membership> memberships;
  std::vector<Layer> layers = {};  // as of the inventory, like the next
  std::vector<Volume> volumes = {};
  std::vector<Filesystem> filesystems;
  UnnamedFilesystems unnamed_filesystems = {};
  std::uint64_t setting_changes_waiting = 0;  // for there are too many to record
  std::uint64_t log_lines_left_out = 0;       // too many of a kind in a minute
  HostFigures host = {};
  std::vector<ArrayDiscards> array_discards;            // one for each md or dm device, sorted
  std::vector<FilesystemDiscards> filesystem_discards;  // of file systems whose volume is watched
  std::vector<NvmeDrive> nvme_drives;                   // sorted by controller
  std::vector<LatencySpike> spikes_ended;               // whose cause became final since the last snapshot
  std::vector<LatencySpike> spikes_going_on;            // with the best cause so far
  std::vector<LatencySpike> spikes_unjudged = {};  // over, but their drive's log pages are still to be read; likewise

  std::string latency_mode;  // full | completion-only, currently in force
  KernelFeatures kernel_features;
  KernelMemory kernel_memory;
  std::vector<ProgramStats> programs;
  std::array<std::uint64_t, kHostLosses> losses{};
  std::uint64_t diskless_requests = 0;  // completed on queues without a disk (NVMe admin, SCSI probing)
  std::vector<SourceStatus> sources;
  std::optional<HistoryFigures> history;  // absent where none is kept
  ProcessStats process;
  ConfigurationFigures configuration;
  OwnCostFigures own_cost;
  std::optional<WebFigures> web;                      // absent until there is a server
  std::shared_ptr<const FlashFigures> flash;          // what the flash models report; null where they are switched off
  std::shared_ptr<const std::vector<Finding>> audit;  // findings of danger and advice; null before the first audit
};

/// The drive that has the device as a namespace; null: none that is known.
inline const NvmeDrive* drive_of(const Snapshot& snapshot, std::string_view device) {
  for (const NvmeDrive& drive : snapshot.nvme_drives) {
    for (const NvmeNamespace& own : drive.identity->namespaces) {
      if (own.device == device) {
        return &drive;
      }
    }
  }
  return nullptr;
}

}  // namespace ssdpulse::model
