// SPDX-License-Identifier: Apache-2.0
// The type of a file system is the kernel's word, its source is whatever the caller of mount(2) wrote. Only for btrfs
// and bcachefs is the source also a word of the kernel, the paths by which the members became known: these choose among
// the file systems that sysfs lists, with all their members.
#include "daemon/sources/inventory/volumes_below.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "daemon/sources/sysfs.h"

namespace ssdpulse::inventory {

namespace sysfs = sources::sysfs;

namespace {

constexpr std::array kPooled{"btrfs", "bcachefs"};
constexpr std::string_view kDevDirectory = "/dev/";

bool is_pooled(const Mount& mount) { return std::find(kPooled.begin(), kPooled.end(), mount.fstype) != kPooled.end(); }

std::vector<std::string> names_in(const std::string& directory) {
  return sysfs::list_directory(directory).value_or(std::vector<std::string>{});
}

/// xfs names its other devices in its options; only who may mount it on a disk can choose them.
std::vector<std::string> other_nodes(const Mount& mount) {
  std::vector<std::string> nodes;
  for (const std::string_view key : {"logdev=", "rtdev="}) {
    for (const std::string& option : mount.options) {
      if (mount.fstype == "xfs" && option.rfind(key, 0) == 0) {
        nodes.push_back(option.substr(key.size()));
      }
    }
  }
  return nodes;
}

}  // namespace

VolumesBelow::VolumesBelow(const std::vector<Mount>& mounts, const Stacking& stacking, const InventoryRoots& roots)
    : stacking_(stacking), roots_(roots) {
  for (const char* fstype : kPooled) {
    find_pools(fstype, mounts);
  }
}

std::string VolumesBelow::of_node(const std::string& path) const {
  if (path.rfind(kDevDirectory, 0) != 0) {
    return {};
  }
  const std::string name = path.substr(kDevDirectory.size());
  const std::string node = roots_.dev + "/" + name;
  struct stat status {};
  if (::stat(node.c_str(), &status) == 0 && S_ISBLK(status.st_mode)) {
    return sysfs::link_target(
        fmt::format("{}/dev/block/{}:{}", roots_.sys, major(status.st_rdev), minor(status.st_rdev)));
  }
  for (const std::string& one : {name, std::string(sysfs::base_name(sysfs::link_target(node)))}) {
    const std::string disk = one.empty() ? std::string() : stacking_.disk_of_node(one);
    if (!disk.empty()) {
      const bool by_mapper = one.rfind("mapper/", 0) == 0;
      return sysfs::link_target(roots_.sys + "/class/block/" + (by_mapper ? disk : sysfs::to_sysfs_name(one)));
    }
  }
  return {};
}

/// btrfs has DEVICES/NAME, bcachefs dev-N/block.
std::vector<VolumesBelow::Pool> VolumesBelow::read_pools(const std::string& fstype) const {
  std::vector<Pool> pools;
  const std::string all = roots_.sys + "/fs/" + fstype;
  for (const std::string& id : names_in(all)) {
    Pool pool{id, {}};
    const bool has_list = fstype == "btrfs";
    const std::string directory = all + "/" + id + (has_list ? "/devices" : "");
    for (const std::string& name : names_in(directory)) {
      std::string member = sysfs::link_target(directory + "/" + name + (has_list ? "" : "/block"));
      if (!member.empty()) {
        pool.members.push_back(std::move(member));
      }
    }
    if (!pool.members.empty()) {
      pools.push_back(std::move(pool));
    }
  }
  return pools;
}

/// Of the nodes in its source; bcachefs lists all of them.
std::vector<std::string> VolumesBelow::source_paths(const Mount& mount) const {
  std::vector<std::string> paths;
  std::string_view rest = mount.source;
  while (!rest.empty()) {
    const std::size_t end = std::min(mount.fstype == "bcachefs" ? rest.find(':') : rest.size(), rest.size());
    if (std::string path = of_node(std::string(rest.substr(0, end))); !path.empty()) {
      paths.push_back(std::move(path));
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return paths;
}

void VolumesBelow::find_pools(const std::string& fstype, const std::vector<Mount>& mounts) {
  const std::vector<Pool>& pools = pools_[fstype] = read_pools(fstype);
  std::vector<const Mount*> nameless;
  std::map<std::size_t, std::vector<const Mount*>> claims;
  for (const Mount& mount : mounts) {
    if (mount.fstype != fstype) {
      continue;
    }
    const auto paths = source_paths(mount);
    const auto is_it = [&](const Pool& pool) {
      const auto is_member = [&](const std::string& path) {
        return std::any_of(pool.members.begin(), pool.members.end(), [&](const std::string& member) {
          return sysfs::base_name(member) == sysfs::base_name(path);
        });
      };
      return paths.empty() ? mount.source == "/dev/disk/by-uuid/" + pool.id || mount.source == "UUID=" + pool.id
                           : std::all_of(paths.begin(), paths.end(), is_member);
    };
    const auto pool = std::find_if(pools.begin(), pools.end(), is_it);
    if (pool == pools.end()) {
      nameless.push_back(&mount);
    } else {
      claims[static_cast<std::size_t>(pool - pools.begin())].push_back(&mount);
    }
  }
  for (const auto& [pool, claimants] : claims) {
    if (claimants.size() == 1) {  // two super blocks cannot have the same members: then a name is out of date
      pool_numbers_[claimants.front()->device_number] = pool;
    }
  }
  // A name may be gone (a link that an initramfs made), or never have existed (/dev/root).
  if (nameless.size() != 1 || pools.size() != claims.size() + 1) {
    return;
  }
  for (std::size_t pool = 0; pool < pools.size(); ++pool) {
    if (claims.count(pool) == 0) {
      pool_numbers_[nameless.front()->device_number] = pool;
    }
  }
}

std::vector<std::string> VolumesBelow::pool_members(const Mount& mount) const {
  const auto& pools = pools_.at(mount.fstype);
  const auto number = pool_numbers_.find(mount.device_number);
  if (number != pool_numbers_.end()) {
    return pools[number->second].members;
  }
  return pools.empty() ? source_paths(mount) : std::vector<std::string>();
}

std::string VolumesBelow::pool_directory(const Mount& mount) const {
  const auto number = pool_numbers_.find(mount.device_number);
  return number == pool_numbers_.end()
             ? std::string()
             : fmt::format("{}/fs/{}/{}", roots_.sys, mount.fstype, pools_.at(mount.fstype)[number->second].id);
}

std::vector<std::string> VolumesBelow::of(const Mount& mount, std::vector<std::string>& warnings) const {
  if (mount.device_number.rfind("0:", 0) == 0) {
    if (!is_pooled(mount)) {
      return {};
    }
    auto members = pool_members(mount);
    if (members.empty()) {
      warnings.push_back(fmt::format("the disks of {} ({}) are unknown", util::for_log(mount.mountpoint),
                                     util::for_log(mount.fstype)));
    }
    return members;
  }
  std::vector<std::string> paths{sysfs::link_target(roots_.sys + "/dev/block/" + mount.device_number)};
  for (const std::string& node : other_nodes(mount)) {
    if (std::string path = of_node(node); !path.empty()) {
      paths.push_back(std::move(path));
    } else {
      warnings.push_back(fmt::format("the disk of {}, a part of {}, is unknown", util::for_log(node),
                                     util::for_log(mount.mountpoint)));
    }
  }
  return paths;
}

}  // namespace ssdpulse::inventory
