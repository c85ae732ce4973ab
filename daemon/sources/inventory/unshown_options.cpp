// SPDX-License-Identifier: Apache-2.0
// ext4 leaves out what equals its super block's defaults (tune2fs -o), but lists everything in /proc/fs/ext4.
#include "daemon/sources/inventory/unshown_options.h"

#include <algorithm>
#include <array>
#include <sstream>
#include <string_view>

#include "daemon/sources/sysfs.h"

namespace ssdpulse::inventory {

namespace sysfs = sources::sysfs;

namespace {

/// They take no options from their super blocks, or are never written; mountinfo then has all that differs from the
/// kernel's defaults. ext2 has a super block with defaults, but with its own driver none that are judged here.
constexpr auto kShowEverything =
    std::to_array<std::string_view>({"btrfs", "erofs", "exfat", "ext2", "f2fs", "gfs2", "iso9660", "jfs", "msdos",
                                     "nilfs2", "ntfs3", "squashfs", "udf", "vfat", "xfs"});

/// What a rule asks for and differs from the kernel's default.
constexpr auto kUnusual = std::to_array<std::string_view>({"data=journal", "data=writeback", "discard", "nobarrier"});

template <typename List>
bool contains(const List& list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

void read_ext4(const std::string& file, const Mount& mount, model::UnshownOptions& unshown) {
  std::istringstream lines(sysfs::read_raw(file).value_or(""));
  bool says_barriers = false;
  bool says_discards = false;
  bool journal = false;
  for (std::string line; std::getline(lines, line);) {
    says_barriers = says_barriers || line == "barrier" || line == "nobarrier";
    says_discards = says_discards || line == "discard" || line == "nodiscard";
    journal = journal || line.rfind("data=", 0) == 0;
    if (contains(kUnusual, line) && mount.options.count(line) == 0) {
      unshown.in_force.insert(line);
    }
  }
  unshown.complete = says_barriers && says_discards;
  if (unshown.complete) {
    unshown.journal = journal;
  }
}

}  // namespace

model::UnshownOptions read_unshown_options(const Mount& mount, const std::string& volume,
                                           const std::string& pool_directory, const InventoryRoots& roots) {
  model::UnshownOptions unshown;
  unshown.complete = contains(kShowEverything, mount.fstype);
  const std::string file = roots.proc + "/fs/ext4/" + volume + "/options";
  const bool by_ext4 = mount.fstype == "ext4" || mount.fstype == "ext3" || mount.fstype == "ext2";
  if (by_ext4 && !volume.empty() && sysfs::read_raw(file)) {  // ext2 may have a driver of its own
    read_ext4(file, mount, unshown);
  }
  if (mount.fstype == "bcachefs" && !pool_directory.empty()) {
    for (const std::string& member : sysfs::list_directory(pool_directory).value_or(std::vector<std::string>{})) {
      if (sysfs::read_number(pool_directory + "/" + member + "/discard") == std::uint64_t{1}) {
        unshown.in_force.insert("discard");
      }
    }
  }
  return unshown;
}

}  // namespace ssdpulse::inventory
