// SPDX-License-Identifier: Apache-2.0
// BlockPrograms: the loaded BPF programs, their links and the mappings of their maps. load() and attach() need
// capabilities; afterwards only program_stats() makes a bpf() call, on descriptors that are already open.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "bpf/abi/block_abi.h"
#include "daemon/base/result.h"
#include "daemon/block/bpf_objects.h"
#include "daemon/block/end_functions.h"
#include "daemon/block/kernel_btf.h"
#include "daemon/block/kernel_memory.h"
#include "daemon/model/snapshot.h"

struct block_io;

namespace ssdpulse::block {

/// The kernel's tables as user space sees them. Counters are read-only; control tables are ours to write.
struct Tables {
  std::span<const io_cell> hot_cells;
  std::span<const io_cell> cold_cells;
  std::span<const write_cell> write_cells;
  std::span<const tagged_cell> tagged_cells;
  std::span<const commit_cell> commit_cells;
  std::span<const device_state> device_states;
  std::span<const device_events> rare_events;
  std::span<const host_state> host_states;
  std::span<queue_entry> queue_entries;
  std::span<known_disk> known_disks;
  std::span<end_function_set> end_functions;
  std::span<issue_slot> issue_slots;
  std::span<attribution_set> attributions;  // written only to free cells
  std::span<const unattributed> unattributed_cells;
  std::span<const announced_cgroup> announced_cgroups;
  std::span<announcements> announcement_states;
  std::span<device_state> writable_states;  // the same as device_states, but writable

  [[nodiscard]] device_geometry& geometry(std::uint32_t device) const { return writable_states[device].geometry; }
  [[nodiscard]] page_sampling& sampling(std::uint32_t device) const { return writable_states[device].sampling; }
  /// Requests that were in flight there no longer hold a slot, and disturb nothing. No queue may still lead there.
  void forget_requests(const Allocation& allocation) const;
};

class BlockPrograms {
 public:
  /// Opens, sizes, verifies and maps; attaches nothing yet. Errors say what is missing and what to do.
  static util::Result<std::unique_ptr<BlockPrograms>> load(const KernelBtf& btf, const MemoryPlan& plan,
                                                           const CommonFunctions& common, bool completion_only);
  /// No programs: something else counts in these tables, which outlive the result.
  static std::unique_ptr<BlockPrograms> none(const Tables& tables);
  ~BlockPrograms();
  BlockPrograms(const BlockPrograms&) = delete;
  BlockPrograms& operator=(const BlockPrograms&) = delete;

  /// From here on I/O is counted, for the disks that the control tables name.
  util::Result<void> attach();
  /// For good; needs no privilege. What was counted can still be read.
  void detach();

  [[nodiscard]] const Tables& tables() const { return tables_; }
  [[nodiscard]] EventRing<sample_event>& samples() { return samples_; }
  [[nodiscard]] std::vector<model::ProgramStats> program_stats() const;

 private:
  BlockPrograms() = default;
  util::Result<void> map_tables();

  std::unique_ptr<block_io, SkeletonDeleter<block_io>> skeleton_;
  TableMappings mappings_;
  Tables tables_;
  EventRing<sample_event> samples_;
  bool kernel_counts_skipped_runs_ = false;
};

}  // namespace ssdpulse::block
