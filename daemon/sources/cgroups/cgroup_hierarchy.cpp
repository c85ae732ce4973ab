// SPDX-License-Identifier: Apache-2.0
#include "daemon/sources/cgroups/cgroup_hierarchy.h"

#include <mntent.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <sstream>

#include "daemon/sources/sysfs.h"

namespace ssdpulse::cgroups {
namespace {

bool is_directory(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
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
    const auto controllers = sources::sysfs::read_raw(hierarchy.directory + "/cgroup.subtree_control");
    std::istringstream words(controllers.value_or(""));
    for (std::string word; words >> word;) {
      if (word == "io") {
        return IoAccounting::below_root;
      }
    }
    return controllers ? IoAccounting::root_only : IoAccounting::unknown;
  }
  const auto names = sources::sysfs::list_directory(hierarchy.directory);
  if (!names) {
    return IoAccounting::unknown;
  }
  return std::any_of(names->begin(), names->end(),
                     [&](const std::string& name) { return is_directory(hierarchy.directory + "/" + name); })
             ? IoAccounting::below_root
             : IoAccounting::root_only;
}

}  // namespace ssdpulse::cgroups
