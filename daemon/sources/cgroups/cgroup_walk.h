// SPDX-License-Identifier: Apache-2.0
// CgroupWalk: finds the cgroups of a hierarchy in one walk, in slices. A directory's inode is its cgroup's identity.
#pragma once

#include <dirent.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "daemon/model/tenants.h"

namespace ssdpulse::cgroups {

struct Directory {
  model::CgroupId parent = model::kNoCgroup;  // kNoCgroup for the root
  std::string leaf;                           // empty: the root
};

struct Walk {
  std::unordered_map<model::CgroupId, Directory> directories;
  bool complete = false;  // false: something could not be read, or exceeded kMaxDirectories or kDeepest
};

inline constexpr std::size_t kMaxDirectories = 65'536;  // about 10 MiB
inline constexpr std::size_t kDeepest = 64;             // levels; the kernel's own bound is cgroup.max.depth

/// Directories that appear or disappear during the walk may or may not be in it.
class CgroupWalk {
 public:
  using OpenDirectory = std::unique_ptr<DIR, int (*)(DIR*)>;

  explicit CgroupWalk(const std::string& directory);

  /// Continues for this long, or for one entry of a directory if that takes longer. Returns whether it has ended.
  bool advance(std::chrono::nanoseconds most);
  /// What was found. Only once, after the walk has ended.
  [[nodiscard]] Walk take() { return std::move(walk_); }

 private:
  struct Level {
    model::CgroupId id;
    OpenDirectory open;
  };
  void step();

  Walk walk_;
  std::vector<Level> levels_;  // the directories it is in, at most kDeepest; empty: it has ended
};

}  // namespace ssdpulse::cgroups
