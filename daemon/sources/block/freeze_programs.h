// SPDX-License-Identifier: Apache-2.0
// FreezePrograms: loads and attaches the programs that see file systems being frozen and thawed. Only open() needs
// capabilities. Owned by one thread.
#pragma once

#include <linux/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "daemon/model/snapshot.h"
#include "daemon/sources/block/event_ring.h"
#include "daemon/sources/block/frozen_super_blocks.h"
#include "daemon/util/outside_text.h"
#include "daemon/util/result.h"

struct freeze;

namespace ssdpulse::block {

class FreezePrograms {
 public:
  /// Fails where the kernel lets us hook no function.
  static util::Result<std::unique_ptr<FreezePrograms>> open(bool kernel_counts_skipped_runs);
  ~FreezePrograms();
  FreezePrograms(const FreezePrograms&) = delete;
  FreezePrograms& operator=(const FreezePrograms&) = delete;

  /// As FrozenSuperBlocks::commands(). Those that were frozen before open() are not among them.
  const std::map<std::string, util::OutsideText>& frozen();
  /// Changes that found no room on their way here.
  [[nodiscard]] std::uint64_t events_lost() const;
  [[nodiscard]] std::vector<model::ProgramStats> program_stats() const;
  /// For good, like BlockPrograms::detach(); then nothing is known to be frozen.
  void detach();

 private:
  FreezePrograms() = default;

  struct SkeletonDeleter {
    void operator()(freeze* skeleton) const;
  };
  std::unique_ptr<freeze, SkeletonDeleter> skeleton_;
  EventRing<freeze_event> events_;
  FrozenSuperBlocks blocks_;
  bool kernel_counts_skipped_runs_ = false;
};

}  // namespace ssdpulse::block
