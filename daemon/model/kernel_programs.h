// SPDX-License-Identifier: Apache-2.0
// KernelFeatures: what the running kernel offers, and what follows from it: ssdpulse_kernel_feature_info, and
// kernel_features in the API. The names there are those of the enumerators. OwnCostFigures: what the programs in the
// kernel cost this host, and how much they do as a result (Effort). RecentCost: what they and the daemon did lately.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "daemon/base/complete.h"
#include "daemon/model/block_io.h"  // index(), name()

namespace ssdpulse::model {

/// After each feature, the decisions that there are for it.
enum class KernelFeature : std::uint8_t {
  discard_submitters,   // the function that shows who submits discards; every_bio; not_hooked
  disk_identity,        // diskseq, device_number
  disk_of_request,      // request, queue
  flush_sequence_flag,  // enum_bit, macro_bit
  freezes,              // freeze_super, not_hooked
  io_accounting,        // root_only, below_root, unknown
  io_cgroup,            // bio, absent
  io_path,              // exact, engine_unknown, flags
  issue_tracepoint,     // request, queue_and_request
  page_hints,           // always, never: as writes.page_hints says; no feature where that is auto
  request_operations,   // req_op, req_opf
  skipped_runs,         // counted, not_reported
  start_time,           // io_stat_flag, zero_if_unknown
  tag_waiters,          // embedded, pointer, absent
  volume_times,         // every_bio, not_hooked; absent: there was no volume at the start
  write_class,          // end_functions, flags_and_pages
  write_hint,           // bio, page, bio_or_page: that of the page for buffered writes
  write_stream,         // bio, absent
};

// clang-format off
enum class KernelDecision : std::uint8_t {
  absent, always, below_root, bio, bio_chain_and_submit, bio_or_page, blkdev_issue_discard,
  blkdev_issue_discard_with_flags, counted, device_number, diskseq, embedded, end_functions, engine_unknown, enum_bit,
  every_bio, exact, flags, flags_and_pages, freeze_super, io_stat_flag, macro_bit, never, not_hooked, not_reported, page,
  pointer, queue, queue_and_request, req_op, req_opf, request, root_only, unknown, zero_if_unknown
};
// clang-format on

inline constexpr auto kKernelFeatureNames = util::enumerator_names<KernelFeature>();
inline constexpr auto kKernelDecisionNames = util::enumerator_names<KernelDecision>();

using KernelFeatures = std::map<KernelFeature, KernelDecision>;

/// False also where nothing is known about the feature.
inline bool decided(const KernelFeatures& features, KernelFeature feature, KernelDecision decision) {
  const auto found = features.find(feature);
  return found != features.end() && found->second == decision;
}

/// How much the programs do; each does less than the one before, and costs less.
enum class Effort : std::uint8_t {
  everything,   // as configured
  essentials,   // without tenants, paths, volumes, and samples for the flash models
  completions,  // also without issues of reads and writes, like latency.mode completion-only
  nothing,      // the programs are detached; until a restart
};
inline constexpr auto kEffortNames = util::names<Effort>({"everything", "essentials", "completions", "nothing"});
inline constexpr std::size_t kEfforts = kEffortNames.size();

/// What is not measured at this effort.
constexpr std::string_view what_is_off(Effort effort) {
  return name(effort,
              util::names<Effort>({
                  "nothing",
                  "tenants, paths, volumes and samples for the flash models",
                  "tenants, paths, volumes, samples, and all that needs the issue of an I/O, as in latency.mode "
                  "completion-only",
                  "everything that the block layer does, until the daemon is restarted",
              }));
}

/// Processor time of one run of each program, doing everything.
struct RunCost {
  double issue_ns = 0;  // 0: there is no such program (latency.mode completion-only)
  double completion_ns = 0;
};

/// How much of a full run's time a run of each program takes at each effort, without the kernel's own part of it. By
/// the kernel's accounting, 2026-11-30, reads and writes together, in two runs on a busy machine: essentials 0.84 and
/// 0.90 of an issue, 0.91 and 0.95 of a completion; completions 0.27 and 0.32, 0.69 and 0.78. By executed instructions
/// (kernel.test_instructions, weighted), which leave out the clock and the waits for memory: 0.64, 0.94; 0.27, 0.59.
struct RunShare {
  double issue;
  double completion;
  double bio = 0;  // both programs of volumes, for each bio that they time; of a full run of the completion program
};
inline constexpr auto kRunShares =
    std::to_array<RunShare>({{1, 1, 0.8}, {0.87, 0.94, 0.1}, {0.3, 0.7, 0.1}, {0, 0, 0}});
static_assert(kRunShares.size() == kEfforts);

/// CPU time of this process, as the scheduler accounts for it.
struct CpuTimes {
  double process_seconds = 0;                    // including threads that have ended
  std::map<std::string, double> thread_seconds;  // by name; threads of the same name are added up
};

struct ProgramRuns {
  double runs = 0;
  double ns = 0;  // of all of them
};

/// What was done in about the last minute.
struct RecentCost {
  double seconds = 0;  // length of that time
  unsigned cpus = 1;   // of the host
  double issues = 0;   // runs of the issue program; 0 also where there is none
  double completions = 0;
  double writes = 0;                                  // of these
  double sampled_writes = 0;                          // of these: of drives with a flash model
  std::optional<RunCost> run_cost = {};               // estimated; absent: unknown
  std::map<std::string, ProgramRuns> accounted = {};  // by program; empty unless the kernel kept account all the time
  CpuTimes cpu = {};
};

/// What the snapshot reports about the cost of the programs.
struct OwnCostFigures {
  std::optional<double> ratio;  // of the time of all CPUs; absent: the cost of a run is unknown
  double limit = 0;             // of the same; 0: none
  Effort effort = Effort::everything;
  std::uint64_t steps_down = 0;  // changes of the effort since the start, like the next
  std::uint64_t steps_up = 0;
  std::shared_ptr<const RecentCost> recent = {};  // null in the first seconds
};

}  // namespace ssdpulse::model
