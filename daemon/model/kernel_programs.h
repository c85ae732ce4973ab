// SPDX-License-Identifier: Apache-2.0
// What the running kernel offers, and what follows from it: ssdpulse_kernel_feature_info, and kernel_features in the
// API. The names are those of the enumerators.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

#include "daemon/base/complete.h"
#include "daemon/model/block_io.h"  // index(), name()

namespace ssdpulse::model {

// Feature, and the decisions that there are for it.
// clang-format off
#define SSDPULSE_KERNEL_FEATURES(FEATURE) \
  FEATURE(discard_submitters)  /* the function that shows who submits discards; every_bio; not_hooked */ \
  FEATURE(disk_identity)       /* diskseq, device_number */ \
  FEATURE(disk_of_request)     /* request, queue */ \
  FEATURE(flush_sequence_flag) /* enum_bit, macro_bit */ \
  FEATURE(freezes)             /* freeze_super, not_hooked */ \
  FEATURE(io_accounting)       /* root_only, below_root, unknown */ \
  FEATURE(io_cgroup)           /* bio, absent */ \
  FEATURE(io_path)             /* exact, engine_unknown, flags */ \
  FEATURE(issue_tracepoint)    /* request, queue_and_request */ \
  FEATURE(page_hints)          /* always, never: as writes.page_hints says; no feature where that is auto */ \
  FEATURE(request_operations)  /* req_op, req_opf */ \
  FEATURE(skipped_runs)        /* counted, not_reported */ \
  FEATURE(start_time)          /* io_stat_flag, zero_if_unknown */ \
  FEATURE(tag_waiters)         /* embedded, pointer, absent */ \
  FEATURE(write_class)         /* end_functions, flags_and_pages */ \
  FEATURE(write_hint)          /* bio, page, bio_or_page: that of the page for buffered writes */ \
  FEATURE(write_stream)        /* bio, absent */

#define SSDPULSE_KERNEL_DECISIONS(DECISION) \
  DECISION(absent) \
  DECISION(always) \
  DECISION(below_root) \
  DECISION(bio) \
  DECISION(bio_chain_and_submit) \
  DECISION(bio_or_page) \
  DECISION(blkdev_issue_discard) \
  DECISION(blkdev_issue_discard_with_flags) \
  DECISION(counted) \
  DECISION(device_number) \
  DECISION(diskseq) \
  DECISION(embedded) \
  DECISION(end_functions) \
  DECISION(engine_unknown) \
  DECISION(enum_bit) \
  DECISION(every_bio) \
  DECISION(exact) \
  DECISION(flags) \
  DECISION(flags_and_pages) \
  DECISION(freeze_super) \
  DECISION(io_stat_flag) \
  DECISION(macro_bit) \
  DECISION(never) \
  DECISION(not_hooked) \
  DECISION(not_reported) \
  DECISION(page) \
  DECISION(pointer) \
  DECISION(queue) \
  DECISION(queue_and_request) \
  DECISION(req_op) \
  DECISION(req_opf) \
  DECISION(request) \
  DECISION(root_only) \
  DECISION(unknown) \
  DECISION(zero_if_unknown)
// clang-format on

#define SSDPULSE_ENUMERATOR(name) name,
#define SSDPULSE_NAME(name) std::string_view(#name),
enum class KernelFeature : std::uint8_t { SSDPULSE_KERNEL_FEATURES(SSDPULSE_ENUMERATOR) };
enum class KernelDecision : std::uint8_t { SSDPULSE_KERNEL_DECISIONS(SSDPULSE_ENUMERATOR) };
inline constexpr std::array kKernelFeatureNames{SSDPULSE_KERNEL_FEATURES(SSDPULSE_NAME)};
inline constexpr std::array kKernelDecisionNames{SSDPULSE_KERNEL_DECISIONS(SSDPULSE_NAME)};
#undef SSDPULSE_NAME
#undef SSDPULSE_ENUMERATOR
#undef SSDPULSE_KERNEL_DECISIONS
#undef SSDPULSE_KERNEL_FEATURES

using KernelFeatures = std::map<KernelFeature, KernelDecision>;

/// False also where nothing is known about the feature.
inline bool decided(const KernelFeatures& features, KernelFeature feature, KernelDecision decision) {
  const auto found = features.find(feature);
  return found != features.end() && found->second == decision;
}

// OwnCostFigures: what the programs in the kernel cost this host, and how much they do as a result (Effort).

/// How much the programs do; each does less than the one before, and costs less.
enum class Effort : std::uint8_t {
  everything,   // as configured
  essentials,   // without tenants, paths, and samples for the flash models
  completions,  // also without issues of reads and writes, like latency.mode completion-only
  nothing,      // the programs are detached; until a restart
};
inline constexpr auto kEffortNames = util::names<Effort>({"everything", "essentials", "completions", "nothing"});
inline constexpr std::size_t kEfforts = kEffortNames.size();

/// What is not measured at this effort, in words.
constexpr std::string_view what_is_off(Effort effort) {
  switch (effort) {
    case Effort::everything:
      return "nothing";
    case Effort::essentials:
      return "tenants, paths and samples for the flash models";
    case Effort::completions:
      return "tenants, paths, samples, and all that needs the issue of an I/O, as in latency.mode completion-only";
    case Effort::nothing:
      return "everything that the block layer does, until the daemon is restarted";
  }
  return "";
}

/// Processor time of one run of each program, doing everything.
struct RunCost {
  double issue_ns = 0;  // 0: there is no such program (latency.mode completion-only)
  double completion_ns = 0;
};

/// What the snapshot reports about it.
struct OwnCostFigures {
  std::optional<double> ratio;  // of the time of all CPUs; absent: the cost of a run is unknown
  double limit = 0;             // of the same; 0: none
  Effort effort = Effort::everything;
  std::uint64_t steps_down = 0;  // changes of the effort since the start, like the next
  std::uint64_t steps_up = 0;
};

}  // namespace ssdpulse::model
