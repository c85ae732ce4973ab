// SPDX-License-Identifier: Apache-2.0
// FrozenSuperBlocks, FreezePrograms: which file systems are frozen, as programs see them being frozen and thawed.
#pragma once

#include <linux/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bpf/abi/freeze_abi.h"
#include "daemon/base/outside_text.h"
#include "daemon/base/result.h"
#include "daemon/block/bpf_objects.h"
#include "daemon/model/snapshot.h"

struct freeze;

namespace ssdpulse::block {

/// Which super blocks are frozen, by what the freeze programs have sent. Pure.
class FrozenSuperBlocks {
 public:
  /// `lost`: events so far that found no room. What may be out of date is forgotten: a freeze is not claimed rather
  /// than claimed for ever.
  void observe(const std::vector<freeze_event>& events, std::uint64_t lost);
  void forget() { commands_.clear(); }

  /// By MAJOR:MINOR as in mountinfo: the command that froze it first; empty where it is not known who keeps it frozen.
  [[nodiscard]] const std::map<std::string, util::OutsideText>& commands() const { return commands_; }

 private:
  std::map<std::string, util::OutsideText> commands_;
  std::uint64_t lost_ = 0;
  bool lost_before_ = false;
};

/// Loads and attaches the programs that see file systems being frozen and thawed. Only open() needs capabilities. Owned
/// by one thread.
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
  std::unique_ptr<freeze, SkeletonDeleter<freeze>> skeleton_;
  EventRing<freeze_event> events_;
  FrozenSuperBlocks blocks_;
  bool kernel_counts_skipped_runs_ = false;
};

}  // namespace ssdpulse::block
