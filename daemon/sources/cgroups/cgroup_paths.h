// SPDX-License-Identifier: Apache-2.0
// CgroupPaths: where do the cgroups that have sent I/O lie, and which of them are gone?
//
// The hierarchy is walked at the start, and again only where a cgroup is not known and its parent is not either, at
// most once in kBetweenWalks and for a two-hundredth of the time, and in slices, as the tick waits: hosts have
// thousands of cgroups, and make new ones every second. What has gone before anybody looked is named by its parent and
// by its own name, which the kernel side kept. Needs no capability: names and inodes are open to all. Owned by one
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
  static constexpr std::chrono::milliseconds kBetweenWalks{900};  // no two in a second
  static constexpr int kShareOfTime = 200;                        // a walk's time is at most one of so many parts
  static constexpr std::chrono::milliseconds kSlice{20};          // of a walk, at one look
  static constexpr std::size_t kLooksAtOnce = 256;                // at directories, to see whether they are there

  /// Nothing: there is no hierarchy, and cgroups are known by their last name alone.
  explicit CgroupPaths(std::optional<Hierarchy> hierarchy) : hierarchy_(std::move(hierarchy)) {}

  struct Look {
    model::CgroupPaths paths;           // of those seen; absent: to be found soon
    std::vector<model::CgroupId> gone;  // whose directory is no more; sorted
  };
  Look look(const model::SeenCgroups& seen, model::SteadyTime now);

  [[nodiscard]] std::uint64_t walks() const { return walks_; }

 private:
  struct Known {
    std::optional<std::string> path;  // from the root; absent: not found yet
    bool found = false;               // else there is no path, or one for the time being
    model::SteadyTime since;          // when it was seen first
    bool gone = false;
  };

  bool walk();
  [[nodiscard]] std::optional<std::string> path_of(model::CgroupId id) const;
  void find(model::CgroupId id, const model::SeenCgroup& seen, Known& known) const;
  [[nodiscard]] bool is_there(model::CgroupId id, const std::string& path) const;

  std::optional<Hierarchy> hierarchy_;
  Walk walk_;                                   // the last one that has ended
  std::optional<model::SteadyTime> walked_at_;  // when it began
  std::optional<CgroupWalk> walking_;           // the one that is under way
  model::SteadyTime walking_since_{};
  std::chrono::nanoseconds walk_took_{};  // of either
  std::uint64_t walks_ = 0;
  std::uint64_t looks_ = 0;
  std::map<model::CgroupId, Known> known_;
};

}  // namespace ssdpulse::cgroups
