// SPDX-License-Identifier: Apache-2.0
#include "daemon/sources/cgroups/cgroup_paths.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace ssdpulse::cgroups {
namespace {

/// For a cgroup whose place is not known: no directory at the top of the host's hierarchy has this name.
constexpr const char* kSomewhere = "/?";

}  // namespace

CgroupPaths::Update CgroupPaths::update(const model::SeenCgroups& seen, model::SteadyTime now) {
  std::map<model::CgroupId, PathEntry> before = std::exchange(entries_, {});
  bool lost = false;
  for (const auto& [id, cgroup] : seen) {
    auto kept = before.extract(id);
    PathEntry known = kept.empty() ? PathEntry{{}, false, now} : std::move(kept.mapped());
    if (!known.found) {
      find(id, cgroup, known);
    }
    lost = lost || !known.found;
    entries_.emplace(id, std::move(known));
  }
  const auto pause = std::max<std::chrono::nanoseconds>(kBetweenWalks, walk_took_ * kShareOfTime);
  if (!walking_ && lost && hierarchy_ && (!walked_at_ || now - *walked_at_ >= pause)) {
    walking_.emplace(hierarchy_->directory);
    walking_since_ = now;
    walk_took_ = {};
  }
  const bool walked = walking_ && walk();
  const std::uint64_t turns = 1 + entries_.size() / kChecksPerUpdate;
  ++updates_;
  Update update;
  for (auto& [id, known] : entries_) {
    if (walked && !known.found) {
      find(id, seen.at(id), known);
    }
    if (known.path && !known.gone && id % turns == updates_ % turns) {
      known.gone = hierarchy_ && known.path->rfind(kSomewhere, 0) != 0 && !is_there(id, *known.path);
    }
    if (known.path) {
      update.paths.emplace(id, *known.path);
    }
    if (known.gone) {
      update.gone.push_back(id);
    }
  }
  return update;
}

/// Returns whether the walk has ended.
bool CgroupPaths::walk() {
  const auto begin = std::chrono::steady_clock::now();
  const bool ended = walking_->advance(kSlice);
  walk_took_ += std::chrono::steady_clock::now() - begin;
  if (ended) {
    walk_ = walking_->take();
    walking_.reset();
    walked_at_ = walking_since_;
    ++walks_;
  }
  return ended;
}

std::optional<std::string> CgroupPaths::path_of(model::CgroupId id) const {
  std::vector<const std::string*> leaves;
  for (std::size_t level = 0; level <= kDeepest; ++level) {
    const auto found = walk_.directories.find(id);
    if (found == walk_.directories.end()) {
      return std::nullopt;
    }
    if (found->second.parent == model::kNoCgroup) {
      std::string path = hierarchy_->whole ? "" : kSomewhere;
      std::for_each(leaves.rbegin(), leaves.rend(), [&](const std::string* leaf) { path += "/" + *leaf; });
      return path.empty() ? "/" : path;
    }
    leaves.push_back(&found->second.leaf);
    id = found->second.parent;
  }
  return std::nullopt;
}

/// Uses what the walk saw, or else its parent's place. If not even a walk that began after its first I/O saw it or its
/// parent, both are gone; where not all cgroups are visible, it is somewhere else. An incomplete walk shows neither.
void CgroupPaths::find(model::CgroupId id, const model::SeenCgroup& seen, PathEntry& known) const {
  known.found = true;
  if (seen.leaf.empty()) {
    known.path = std::string("/");
  } else if (auto path = path_of(id)) {
    known.path = std::move(path);
  } else if (const auto parent = path_of(seen.parent)) {
    known.path = (*parent == "/" ? "" : *parent) + "/" + seen.leaf.raw();
  } else if (!hierarchy_ || (walked_at_ && *walked_at_ >= known.since)) {
    known.path = std::string(kSomewhere) + "/" + seen.leaf.raw();
    known.found = !hierarchy_ || walk_.complete;
    known.gone = hierarchy_ && hierarchy_->whole && walk_.complete;
  } else {
    known.found = false;
  }
}

/// Also true if this cannot be determined now.
bool CgroupPaths::is_there(model::CgroupId id, const std::string& path) const {
  struct stat status {};
  if (::lstat((hierarchy_->directory + path).c_str(), &status) != 0) {
    return errno != ENOENT && errno != ENOTDIR;
  }
  return status.st_ino == id;
}

}  // namespace ssdpulse::cgroups
