// SPDX-License-Identifier: Apache-2.0
// Hierarchy, CgroupWalk, CgroupPaths: which cgroups there are, where they are, and which of them are gone. Needs no
// capability: names and inodes are readable by everybody.
#pragma once

#include <dirent.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "daemon/model/clock.h"
#include "daemon/model/tenant_io.h"

namespace ssdpulse::tenants {

/// The hierarchy that the kernel charges I/O to: v1's blkio hierarchy if that is mounted, else v2's.
struct Hierarchy {
  std::string directory;  // where it is mounted
  bool unified = true;    // v2
  bool whole = true;      // false in a cgroup namespace, or if only a part is mounted: not all are visible
};

/// Nothing if there is none, or mounts cannot be read. `proc`: usually /proc.
std::optional<Hierarchy> find_hierarchy(const std::string& proc);

/// v2: whether the root enables the io controller for its children; v1: whether there is any cgroup below the root.
/// `unknown` if the hierarchy is not whole or cannot be read.
model::IoAccounting accounting_of(const Hierarchy& hierarchy);

/// A cgroup; its inode is its identity.
struct Directory {
  model::CgroupId parent = model::kNoCgroup;  // kNoCgroup for the root
  std::string leaf;                           // empty: the root
};

struct Walk {
  std::unordered_map<model::CgroupId, Directory> directories;
  bool complete = false;  // false: something could not be read, or exceeded kMaxDirectories or kMaxLevels
};

inline constexpr std::size_t kMaxDirectories = 65'536;  // about 10 MiB
inline constexpr std::size_t kMaxLevels = 64;           // of directories; the kernel's own bound is cgroup.max.depth

/// Finds the cgroups of a hierarchy in one walk, in slices. Directories that appear or disappear during the walk may or
/// may not be in it.
class CgroupWalk {
 public:
  using OpenDirectory = std::unique_ptr<DIR, int (*)(DIR*)>;

  explicit CgroupWalk(const std::string& directory);

  /// Continues for this long, or for one entry of a directory if that takes longer. Returns whether it has ended.
  bool advance(std::chrono::nanoseconds max_time);
  /// What was found. Only once, after the walk has ended.
  [[nodiscard]] Walk take() { return std::move(walk_); }

 private:
  struct Level {
    model::CgroupId id;
    OpenDirectory open;
  };
  void step();

  Walk walk_;
  std::vector<Level> levels_;  // the directories it is in, at most kMaxLevels; empty: it has ended
};

/// Where the cgroups are that have sent I/O, and which of them are gone.
///
/// The hierarchy is walked at the start, and again only when neither a cgroup nor its parent is known, at most once per
/// kBetweenWalks and for a two-hundredth of the time, and in slices, because the tick waits: hosts have thousands of
/// cgroups, and create new ones every second. One that was gone before a walk found it is named by its parent and by
/// its own name, which the kernel side kept. Owned by one thread.
class CgroupPaths {
 public:
  static constexpr std::chrono::milliseconds kBetweenWalks{900};  // never two in one second
  static constexpr int kShareOfTime = 200;                        // walks take at most one part in this many
  static constexpr std::chrono::milliseconds kSlice{20};          // of a walk, in one update()
  static constexpr std::size_t kChecksPerUpdate = 256;  // directories, on average: IDs decide whose turn it is

  /// Without a hierarchy, cgroups are known only by their last name, below model::kUnknownParent.
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

}  // namespace ssdpulse::tenants
