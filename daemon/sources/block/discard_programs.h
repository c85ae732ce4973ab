// SPDX-License-Identifier: Apache-2.0
// Loads and attaches what sees discards being made. The second of the two includers of a skeleton.
// Needs capabilities in open() alone; what it counted is read through a mapping.
#pragma once

#include <linux/types.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bpf/abi/discard_abi.h"
#include "daemon/model/snapshot.h"
#include "daemon/sources/block/kernel_btf.h"
#include "daemon/util/result.h"

struct discard;

namespace ssdpulse::block {

class DiscardPrograms {
 public:
  /// Takes the best hook that this kernel lets us have; one that every bio passes only if `may_hook_every_bio`.
  /// `known_disks_fd`: the block programs' table, shared.
  static util::Result<std::unique_ptr<DiscardPrograms>> open(const KernelBtf& btf, int known_disks_fd,
                                                             std::uint32_t places, bool may_hook_every_bio);
  ~DiscardPrograms();
  DiscardPrograms(const DiscardPrograms&) = delete;
  DiscardPrograms& operator=(const DiscardPrograms&) = delete;

  /// [place][submitter]
  [[nodiscard]] std::span<const discard_cell> cells() const { return cells_; }
  /// In words: which hook, and why no better one.
  [[nodiscard]] const std::string& decision() const { return decision_; }
  [[nodiscard]] std::vector<model::ProgramStats> program_stats() const;

 private:
  DiscardPrograms() = default;
  util::Result<void> hook(const KernelBtf& btf, DiscardHook hook, int known_disks_fd, std::uint32_t places);
  util::Result<void> map_cells();

  struct SkeletonDeleter {
    void operator()(discard* skeleton) const;
  };
  std::unique_ptr<discard, SkeletonDeleter> skeleton_;
  std::span<const discard_cell> cells_;
  std::size_t mapped_bytes_ = 0;
  std::string decision_;
  bool kernel_counts_skipped_runs_ = false;
};

}  // namespace ssdpulse::block
