// SPDX-License-Identifier: Apache-2.0
#include "daemon/sources/cgroups/cgroup_walk.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <string_view>
#include <utility>

#include "daemon/util/unique_fd.h"

namespace ssdpulse::cgroups {
namespace {

CgroupWalk::OpenDirectory open_below(int above, const char* name) {
  util::UniqueFd fd(::openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  CgroupWalk::OpenDirectory directory(fd.valid() ? ::fdopendir(fd.get()) : nullptr, ::closedir);
  if (directory) {
    static_cast<void>(fd.release());
  }
  return directory;
}

}  // namespace

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

bool CgroupWalk::advance(std::chrono::nanoseconds most) {
  const auto begin = std::chrono::steady_clock::now();
  while (!levels_.empty()) {
    step();
    if (std::chrono::steady_clock::now() - begin >= most) {
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
  if (walk_.directories.size() >= kMaxDirectories || levels_.size() >= kDeepest) {
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

}  // namespace ssdpulse::cgroups
