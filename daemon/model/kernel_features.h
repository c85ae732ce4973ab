// SPDX-License-Identifier: Apache-2.0
// What the running kernel offers, and what follows from it: ssdpulse_kernel_feature_info, and kernel_features in the
// API. The names are those of the enumerators.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string_view>

#include "daemon/model/operation.h"  // index(), name()

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

}  // namespace ssdpulse::model
