// SPDX-License-Identifier: Apache-2.0
// How well ssdpulse itself sees, and what it costs.
// What the kernel or the mode cannot show is absent, never 0.
#include <chrono>
#include <string>

#include "daemon/model/version.h"
#include "exporters/prometheus/families.h"

namespace ssdpulse::exposition {
namespace {

using model::Loss;
using model::Snapshot;

bool visible(Loss loss, bool completion_only) {
  switch (loss) {
    case Loss::completion_missed:
    case Loss::stray:
    case Loss::slot_collision:
      return !completion_only;  // only a mode that sees issues can miss one
    case Loss::clock:
    case Loss::unstamped:
      return true;
  }
  return true;
}

void lost_events(const Snapshot& snapshot, Samples& out) {
  const bool completion_only = snapshot.latency_mode == "completion-only";
  const bool detached = snapshot.own_cost.effort == model::Effort::nothing;
  if (!detached) {  // else nothing can be lost any more
    for_each_seen_device(snapshot, [&](const model::DeviceSnapshot& device, const auto& since) {
      for (std::size_t i = 0; i < model::kLosses; ++i) {
        if (visible(static_cast<Loss>(i), completion_only)) {
          out.add({{"cause", std::string(model::kLossNames[i])}, {"device", device.device->name}},
                  device.io ? to_double(device.io->losses[i]) : 0.0, since);
        }
      }
    });
  }
  for (std::size_t i = 0; i < model::kHostLosses; ++i) {
    out.add({{"cause", std::string(model::kHostLossNames[i])}}, to_double(snapshot.losses[i]), daemon_start(snapshot));
  }
  for (const auto& program : snapshot.programs) {
    if (program.recursion_misses) {
      out.add({{"cause", "recursion"}, {"program", program.name}}, to_double(*program.recursion_misses),
              daemon_start(snapshot));
    }
  }
}

void accounting_drift(const Snapshot& snapshot, Samples& out) {
  for (const auto& device : snapshot.devices) {
    for (std::size_t i = 0; i < model::kOperations; ++i) {
      if (const auto& ios = device.drift.ios[i]) {
        out.add({{"device", device.device->name}, {"operation", std::string(model::kOperationNames[i])}},
                static_cast<double>(*ios));
      }
    }
  }
}

void source_up(const Snapshot& snapshot, Samples& out) {
  for (const auto& source : snapshot.sources) {
    out.add({{"source", source.name}, {"controller", source.controller}}, source.up ? 1 : 0);
  }
}

void source_errors(const Snapshot& snapshot, Samples& out) {
  for (const auto& source : snapshot.sources) {
    for (const auto& [kind, errors] : source.errors) {
      out.add({{"source", source.name}, {"controller", source.controller}, {"kind", kind}}, to_double(errors),
              daemon_start(snapshot));
    }
  }
}

void kernel_memory(const Snapshot& snapshot, Samples& out) {
  for (const auto& [use, bytes] : snapshot.kernel_memory.bytes_by_use) {
    out.add({{"use", use}}, to_double(bytes));
  }
}

void kernel_features(const Snapshot& snapshot, Samples& out) {
  for (const auto& [feature, decision] : snapshot.kernel_features) {
    out.add_info({{"feature", label_of(feature, model::kKernelFeatureNames)},
                  {"decision", label_of(decision, model::kKernelDecisionNames)}});
  }
}

void bpf_runs(const Snapshot& snapshot, Samples& out) {
  for (const auto& program : snapshot.programs) {
    if (program.runs) {
      out.add({{"program", program.name}}, to_double(*program.runs), daemon_start(snapshot));
    }
  }
}

void bpf_run_seconds(const Snapshot& snapshot, Samples& out) {
  for (const auto& program : snapshot.programs) {
    if (program.run_ns) {
      out.add({{"program", program.name}}, to_seconds(*program.run_ns), daemon_start(snapshot));
    }
  }
}

void cpu_limit_steps(const Snapshot& snapshot, Samples& out) {
  out.add({{"direction", "down"}}, to_double(snapshot.own_cost.steps_down), daemon_start(snapshot));
  out.add({{"direction", "up"}}, to_double(snapshot.own_cost.steps_up), daemon_start(snapshot));
}

/// A count of 0 is shown only for the `usual` value of the label.
void add_rows(const Snapshot& snapshot, const model::HistoryFigures::Rows& rows, const char* label,
              std::string_view usual, Samples& out) {
  for (const auto& [table, count] : rows) {
    if (count > 0 || table.second == usual) {
      out.add({{"table", table.first}, {label, std::string(table.second)}}, to_double(count), daemon_start(snapshot));
    }
  }
}

void history_rows(const Snapshot& snapshot, Samples& out) {
  if (snapshot.history) {
    add_rows(snapshot, snapshot.history->rows, "fate", "written", out);
  }
}

void history_rows_waiting(const Snapshot& snapshot, Samples& out) {
  if (snapshot.history) {
    for (const auto& [table, rows] : snapshot.history->rows_waiting) {
      out.add({{"table", table}}, to_double(rows));
    }
  }
}

void history_rows_deleted(const Snapshot& snapshot, Samples& out) {
  if (snapshot.history) {
    add_rows(snapshot, snapshot.history->rows_deleted, "reason", "age", out);
  }
}

void history_size(const Snapshot& snapshot, Samples& out) {
  if (snapshot.history) {
    out.add({}, to_double(snapshot.history->bytes_on_disk));
  }
}

double seconds_since_epoch(model::WallTime time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

void history_begin(const Snapshot& snapshot, Samples& out) {
  if (snapshot.history && snapshot.history->minutes_from) {
    out.add({{"resolution", "minute"}}, seconds_since_epoch(*snapshot.history->minutes_from));
  }
  if (snapshot.history && snapshot.history->hours_from) {
    out.add({{"resolution", "hour"}}, seconds_since_epoch(*snapshot.history->hours_from));
  }
}

void cpu_limit(const Snapshot& snapshot, Samples& out) {
  if (snapshot.own_cost.limit > 0) {
    out.add({}, snapshot.own_cost.limit);
  }
}

constexpr std::string_view kNoHistory = "no history is kept (history.directory is empty)";
constexpr std::string_view kNoBpfStats = "the host has kernel.bpf_stats_enabled off";

constexpr auto kLossCauses =
    join(model::kLossNames, model::kHostLossNames, std::array<std::string_view, 1>{"recursion"});
constexpr auto kDriftOperations = std::to_array<std::string_view>({"read", "write", "flush", "discard"});
constexpr auto kSources =
    std::to_array<std::string_view>({"block", "inventory", "nvme", "history", "audit", "web_config", "web"});
constexpr auto kFailingSources = std::to_array<std::string_view>({"inventory", "nvme", "history", "web_config", "web"});
constexpr auto kMemoryUses =
    std::to_array<std::string_view>({"cells", "slots", "tables", "attribution", "samples", "volumes"});
constexpr auto kLatencyModes = std::to_array<std::string_view>({"full", "completion-only"});

constexpr LabelDescription kProgram{"program", "the BPF program"};
constexpr LabelDescription kSource{"source", "what is read; web: the listen addresses are ours", kSources};
constexpr LabelDescription kSourceController{"controller", "with source nvme: the drive; empty: all of them"};

constexpr LabelDescription kLossLabels[] = {
    {"cause",
     "completion_missed: the completion was never seen (another I/O took the slot, or the kernel itself twice had "
     "nothing in flight); stray: a completion whose issue was not seen; slot_collision: only on disks with more tags "
     "than the table holds; clock: an end before its start, counted in the zero bucket; unstamped: the kernel gave no "
     "start time, so there is no queue or total latency (queue/iostats is 0); device_table_full: the tables have no "
     "room for the disk; device_pending: I/Os of a new disk before it got a place in the tables; queue_id_range: a "
     "request queue whose number is beyond the table; freeze_events: freezes and thaws of file systems that found no "
     "room on their way to the daemon; recursion: the kernel skipped a run of the program, because an "
     "I/O completed in an interrupt while it ran (not reported before Linux 6.1)",
     kLossCauses},
    {"device", "the disk; empty: of the whole host"},
    {"program", "with cause recursion: the BPF program"}};
constexpr LabelDescription kDriftLabels[] = {kDevice, {"operation", "what the request does", kDriftOperations}};
constexpr LabelDescription kSourceLabels[] = {kSource, kSourceController};
constexpr LabelDescription kSourceErrorLabels[] = {
    {"source", "what is read", kFailingSources},
    kSourceController,
    {"kind", "what failed: refused, timeout, garbage, impossible, unconfirmed, reader_gone, dropped_row, ..."}};
constexpr auto kResolutions = std::to_array<std::string_view>({"minute", "hour"});
constexpr LabelDescription kResolutionLabels[] = {{"resolution", "how fine the times are", kResolutions}};
constexpr LabelDescription kTable{"table", "of ssdpulse.db, see ssdpulse-history(5)"};
constexpr LabelDescription kTableLabels[] = {kTable};
constexpr auto kFates = std::to_array<std::string_view>({"written", "replaced", "refused", "surplus"});
constexpr LabelDescription kFateLabels[] = {
    kTable,
    {"fate",
     "written: it is on the disk; replaced: by a later state, before it was written; refused: it exceeds a bound, or "
     "the file does not accept it; surplus: too many were waiting, or a mark could not be kept at once. Absent but for "
     "written: none",
     kFates}};
constexpr auto kReasons = std::to_array<std::string_view>({"age", "size", "hour", "repeated", "unreadable", "clock"});
constexpr LabelDescription kDeletedLabels[] = {
    kTable,
    {"reason",
     "age: older than history.retention; size: beyond history.size, or the table's share of it; hour: minutes that "
     "became an hour; repeated: it said the same as another, or a later one of the same minute took its place; "
     "unreadable: damaged, or deleted by another program; clock: the clock went back a little, and the same minute "
     "came again. Absent but for age: none",
     kReasons}};
constexpr LabelDescription kUseLabels[] = {{"use", "what the memory holds", kMemoryUses}};
constexpr LabelDescription kFeatureLabels[] = {
    {"feature", "what was looked for in the kernel's type information", model::kKernelFeatureNames},
    {"decision", "what was found, and is used", model::kKernelDecisionNames}};
constexpr LabelDescription kModeLabels[] = {{"mode", "as configured in latency.mode", kLatencyModes}};
constexpr LabelDescription kBuildLabels[] = {{"version", "of ssdpulse"}, {"revision", "of its source"}};
constexpr LabelDescription kProgramLabels[] = {kProgram};
constexpr auto kDirections = std::to_array<std::string_view>({"down", "up"});
constexpr LabelDescription kStepLabels[] = {
    {"direction", "down: something was turned off; up: it was turned on again", kDirections}};

constexpr FamilyDescription kFamilies[] = {
    {"ssdpulse_lost_events_total", "I/Os that could not be measured, or only in part.", lost_events, kLossLabels},
    {"ssdpulse_accounting_drift_ios",
     "I/Os counted by ssdpulse minus those in the kernel's diskstats, compared whenever both are idle. 0 is correct.",
     accounting_drift, kDriftLabels,
     "the disk has not been quiet yet, or the kernel keeps no statistics for it (queue/iostats is 0)"},
    {"ssdpulse_config_last_reload_successful",
     "1 if the last attempt to load the configuration succeeded, 0 if it was refused and the previous one stays in "
     "force.",
     [](const Snapshot& s, Samples& out) { out.add({}, s.configuration.last_reload_successful ? 1 : 0); }},
    {"ssdpulse_config_last_reload_success_timestamp_seconds", "When the running configuration was loaded.",
     [](const Snapshot& s, Samples& out) { out.add({}, seconds_since_epoch(s.configuration.loaded_at)); }},
    {"ssdpulse_source_up", "1 if the source delivers data, 0 if it does not.", source_up, kSourceLabels},
    {"ssdpulse_source_errors_total", "Failed attempts of a source to read something.", source_errors,
     kSourceErrorLabels, "the source has had no error of this kind"},
    {"ssdpulse_history_rows_total",
     "What became of the rows that the history was given: one per drive and minute, one per device and minute, and one "
     "for each event. Others are waiting.",
     history_rows, kFateLabels, kNoHistory},
    {"ssdpulse_history_rows_waiting", "Rows of the history that wait for its disk.", history_rows_waiting, kTableLabels,
     kNoHistory},
    {"ssdpulse_history_rows_deleted_total", "Rows that left a table of the history.", history_rows_deleted,
     kDeletedLabels, kNoHistory},
    {"ssdpulse_history_size_bytes", "Size of the history's files.", history_size, kNoLabels, kNoHistory},
    {"ssdpulse_history_begin_timestamp_seconds",
     "The oldest time for which the history has histograms: by minute, and by hour, which go back further.",
     history_begin, kResolutionLabels, "no history is kept, or nothing was written yet"},
    {"ssdpulse_log_lines_suppressed_total",
     "Lines that are not in the log, because there were more than 120 of their kind in a minute. A line a minute says "
     "how many.",
     [](const Snapshot& s, Samples& out) { out.add({}, to_double(s.log_lines_left_out), daemon_start(s)); }},
    {"ssdpulse_setting_changes_waiting",
     "Changes of settings, mounts among them, that are not in the log and in the history yet, because there were more "
     "than 128 of a device, or 1024 of all, in an hour.",
     [](const Snapshot& s, Samples& out) { out.add({}, to_double(s.setting_changes_waiting)); }},
    {"ssdpulse_kernel_memory_bytes", "Kernel memory that the BPF maps occupy, fixed at startup.", kernel_memory,
     kUseLabels},
    {"ssdpulse_kernel_feature_info", "What the running kernel offers, and what follows from it; always 1.",
     kernel_features, kFeatureLabels},
    {"ssdpulse_latency_mode_info", "The latency mode in force; always 1.",
     [](const Snapshot& s, Samples& out) {
       out.add_info({{"mode", s.latency_mode}});
     },
     kModeLabels},
    {"ssdpulse_build_info", "The running build; always 1.",
     [](const Snapshot&, Samples& out) {
       out.add_info({{"version", model::kVersion}, {"revision", model::kRevision}});
     },
     kBuildLabels},
    {"ssdpulse_snapshot_timestamp_seconds", "When the values on this page were sampled.",
     [](const Snapshot& s, Samples& out) { out.add({}, seconds_since_epoch(s.taken_at)); }},
    {"ssdpulse_missed_ticks_total", "Samples taken more than half an interval late.",
     [](const Snapshot& s, Samples& out) { out.add({}, to_double(s.missed_ticks), daemon_start(s)); }},
    {"ssdpulse_bpf_runs_total", "Runs of a BPF program.", bpf_runs, kProgramLabels, kNoBpfStats},
    {"ssdpulse_bpf_run_seconds_total", "Time spent in a BPF program.", bpf_run_seconds, kProgramLabels, kNoBpfStats},
    {"ssdpulse_estimated_bpf_cpu_ratio",
     "Share of all CPUs' time that the BPF programs take: their runs times the cost of one, as measured on this host "
     "at startup, or the kernel's own figure while kernel.bpf_stats_enabled is on.",
     [](const Snapshot& s, Samples& out) { out.add({}, s.own_cost.ratio); }, kNoLabels,
     "the cost of a run could not be measured, and the kernel keeps no figure"},
    {"ssdpulse_cpu_limit_ratio", "Largest share of all CPUs' time that the BPF programs may take (limits.cpu).",
     cpu_limit, kNoLabels, "there is no limit (limits.cpu is 0%)"},
    {"ssdpulse_cpu_limit_level",
     "What is turned off to stay below limits.cpu: 0 nothing; 1 tenants, paths, and samples for the flash models; 2 "
     "also everything that latency.mode completion-only omits; 3 the programs are detached until a restart.",
     [](const Snapshot& s, Samples& out) { out.add({}, static_cast<double>(s.own_cost.effort)); }},
    {"ssdpulse_cpu_limit_steps_total", "Changes of ssdpulse_cpu_limit_level.", cpu_limit_steps, kStepLabels},
    {"process_cpu_seconds_total", "User and system CPU time of the daemon.",
     [](const Snapshot& s, Samples& out) { out.add({}, s.process.cpu_seconds, daemon_start(s)); }},
    {"process_resident_memory_bytes", "Resident memory of the daemon.",
     [](const Snapshot& s, Samples& out) { out.add({}, to_double(s.process.resident_bytes)); }},
    {"process_virtual_memory_bytes", "Virtual memory of the daemon.",
     [](const Snapshot& s, Samples& out) { out.add({}, to_double(s.process.virtual_bytes)); }},
    {"process_open_fds", "Open file descriptors of the daemon.",
     [](const Snapshot& s, Samples& out) { out.add({}, to_double(s.process.open_fds)); }},
    {"process_max_fds", "Maximum number of file descriptors that the daemon may open.",
     [](const Snapshot& s, Samples& out) { out.add({}, to_double(s.process.max_fds)); }},
    {"process_threads", "Threads of the daemon.",
     [](const Snapshot& s, Samples& out) { out.add({}, to_double(s.process.threads)); }},
    {"process_start_time_seconds", "When the daemon started.",
     [](const Snapshot& s, Samples& out) { out.add({}, s.process.start_time_seconds); }},
};

}  // namespace

std::span<const FamilyDescription> self_families() { return kFamilies; }

}  // namespace ssdpulse::exposition
