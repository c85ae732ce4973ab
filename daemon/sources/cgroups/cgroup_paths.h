// SPDX-License-Identifier: Apache-2.0
// CgroupPaths: where the cgroups are that have sent I/O, and which of them are gone.
//
// The hierarchy is walked at the start, and again only when neither a cgroup nor its parent is known, at most once per
// kBetweenWalks and for a two-hundredth of the time, and in slices, because the tick waits: hosts have thousands of
// cgroups, and create new ones every second. One that was gone before anybody looked is named by its parent and by its
// own name, which the kernel side kept. Needs no capability: names and inodes are readable by everybody. Owned by one
// thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "daemon/model/clock.h"
#include "daemon/sources/cgroups/cgroup_hierarchy.h"
#include "daemon/sources/cgroups/cgroup_walk.h"

namespace ssdpulse::cgroups {

class CgroupPaths {
 public:
  static constexpr std::chrono::milliseconds kBetweenWalks{900};  // never two in one second
  static constexpr int kShareOfTime = 200;                        // walks take at most one part in this many
  static constexpr std::chrono::milliseconds kSlice{20};          // of a walk, in one update()
  static constexpr std::size_t kChecksPerUpdate = 256;  // directories checked in one update(): are they there?

  /// Without a hierarchy, cgroups are known only by their last name.
  explicit CgroupPaths(std::optional<Hierarchy> hierarchy) : hierarchy_(std::move(hierarchy)) {}

  struct Update {
    model::CgroupPaths paths;           // of those seen; absent: will be found soon
    std::vector<model::CgroupId> gone;  // whose directory no longer exists; sorted
  };
  Update update(const model::SeenCgroups& seen, model::SteadyTime now);

  [[nodiscard]] std::uint64_t walks() const { return walks_; }

 private:
  struct PathEntry {
    std::optional<std::string> path;  // from the root; absent: not found yet
    bool found = false;               // if false, there is no path, or a temporary one
    model::SteadyTime since;          // when it was first seen
    bool gone = false;
  };

  bool walk();
  [[nodiscard]] std::optional<std::string> path_of(model::CgroupId id) const;
  void find(model::CgroupId id, const model::SeenCgroup& seen, PathEntry& known) const;
  [[nodiscard]] bool is_there(model::CgroupId id, const std::string& path) const;

  std::optional<Hierarchy> hierarchy_;
  Walk walk_;                                   // the last one that ended
  std::optional<model::SteadyTime> walked_at_;  // when it began
  std::optional<CgroupWalk> walking_;           // the one in progress
  model::SteadyTime walking_since_{};
  std::chrono::nanoseconds walk_took_{};  // of the one in progress, else of the last one
  std::uint64_t walks_ = 0;
  std::uint64_t updates_ = 0;
  std::map<model::CgroupId, PathEntry> entries_;
};

}  // namespace ssdpulse::cgroups
