// SPDX-License-Identifier: Apache-2.0
#include "daemon/tenants/cgroup_paths.h"

#include <fcntl.h>
#include <mntent.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <string_view>

#include "daemon/base/file_descriptor.h"
#include "daemon/base/sysfs.h"

namespace ssdpulse::tenants {
namespace {

bool is_directory(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

CgroupWalk::OpenDirectory open_below(int above, const char* name) {
  util::UniqueFd fd(::openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  CgroupWalk::OpenDirectory directory(fd.valid() ? ::fdopendir(fd.get()) : nullptr, ::closedir);
  if (directory) {
    static_cast<void>(fd.release());
  }
  return directory;
}

/// kernfs gives the root of a hierarchy this inode.
constexpr ino_t kRootInode = 1;

bool is_whole(const std::string& directory) {
  struct stat status {};
  return ::stat(directory.c_str(), &status) == 0 && status.st_ino == kRootInode;
}

}  // namespace

std::optional<Hierarchy> find_hierarchy(const std::string& proc) {
  const std::unique_ptr<FILE, int (*)(FILE*)> mounts(::setmntent((proc + "/self/mounts").c_str(), "re"), ::endmntent);
  std::optional<Hierarchy> unified;
  std::array<char, 8192> text{};
  mntent mount{};
  while (mounts && ::getmntent_r(mounts.get(), &mount, text.data(), static_cast<int>(text.size())) != nullptr) {
    const std::string_view type = mount.mnt_type;
    if (type == "cgroup" && ::hasmntopt(&mount, "blkio") != nullptr) {
      return Hierarchy{mount.mnt_dir, false, is_whole(mount.mnt_dir)};
    }
    if (type == "cgroup2" && !unified) {
      unified = Hierarchy{mount.mnt_dir, true, is_whole(mount.mnt_dir)};
    }
  }
  return unified;
}

model::IoAccounting accounting_of(const Hierarchy& hierarchy) {
  using model::IoAccounting;
  if (!hierarchy.whole) {
    return IoAccounting::unknown;
  }
  if (hierarchy.unified) {
    const auto text = sysfs::read_raw(hierarchy.directory + "/cgroup.subtree_control");
    const auto controllers = sysfs::words_in(text.value_or(""));
    return !text                                                                          ? IoAccounting::unknown
           : std::find(controllers.begin(), controllers.end(), "io") != controllers.end() ? IoAccounting::below_root
                                                                                          : IoAccounting::root_only;
  }
  const auto names = sysfs::list_directory(hierarchy.directory);
  if (!names) {
    return IoAccounting::unknown;
  }
  return std::any_of(names->begin(), names->end(),
                     [&](const std::string& name) { return is_directory(hierarchy.directory + "/" + name); })
             ? IoAccounting::below_root
             : IoAccounting::root_only;
}

CgroupWalk::CgroupWalk(const std::string& directory) {
  struct stat root {};
  OpenDirectory top = open_below(AT_FDCWD, directory.c_str());
  if (!top || ::fstat(::dirfd(top.get()), &root) != 0) {
    return;
  }
  walk_.complete = true;
  walk_.directories.emplace(root.st_ino, Directory{});
  levels_.push_back({root.st_ino, std::move(top)});
}

bool CgroupWalk::advance(std::chrono::nanoseconds max_time) {
  const auto begin = std::chrono::steady_clock::now();
  while (!levels_.empty()) {
    step();
    if (std::chrono::steady_clock::now() - begin >= max_time) {
      break;
    }
  }
  return levels_.empty();
}

void CgroupWalk::step() {
  const dirent* entry = ::readdir(levels_.back().open.get());
  if (entry == nullptr) {
    levels_.pop_back();
    return;
  }
  const std::string_view name = entry->d_name;
  if (entry->d_type != DT_DIR || name == "." || name == "..") {
    return;
  }
  if (walk_.directories.size() >= kMaxDirectories || levels_.size() >= kMaxLevels) {
    walk_.complete = false;
    return;
  }
  walk_.directories.emplace(entry->d_ino, Directory{levels_.back().id, std::string(name)});
  if (OpenDirectory below = open_below(::dirfd(levels_.back().open.get()), entry->d_name)) {
    levels_.push_back({entry->d_ino, std::move(below)});
  } else if (errno != ENOENT) {
    walk_.complete = false;
  }
}

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
      known.gone = hierarchy_ && !known.path->starts_with(model::kUnknownParent) && !is_there(id, *known.path);
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
  for (std::size_t level = 0; level <= kMaxLevels; ++level) {
    const auto found = walk_.directories.find(id);
    if (found == walk_.directories.end()) {
      return std::nullopt;
    }
    if (found->second.parent == model::kNoCgroup) {
      std::string path(hierarchy_->whole ? "" : model::kUnknownParent);
      std::for_each(leaves.rbegin(), leaves.rend(), [&](const std::string* leaf) { path += "/" + *leaf; });
      return path.empty() ? "/" : path;
    }
    leaves.push_back(&found->second.leaf);
    id = found->second.parent;
  }
  return std::nullopt;
}

/// Uses what the walk saw, or else its parent's path. If not even a walk that began after its first I/O saw it or its
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
    known.path = std::string(model::kUnknownParent) + "/" + seen.leaf.raw();
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

}  // namespace ssdpulse::tenants
