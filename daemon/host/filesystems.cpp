// SPDX-License-Identifier: Apache-2.0
#include "daemon/host/filesystems.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <optional>
#include <sstream>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "daemon/base/file_descriptor.h"
#include "daemon/base/sysfs.h"

namespace ssdpulse::host {
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

/// ext4 leaves out of mountinfo what equals its super block's defaults (tune2fs -o), but lists everything here.
void read_ext4(const std::string& file, const Mount& mount, model::UnshownOptions& unshown) {
  std::istringstream lines(sysfs::read_raw(file).value_or(""));
  bool says_barriers = false;
  bool says_discards = false;
  bool journal = false;
  for (std::string line; std::getline(lines, line);) {
    says_barriers = says_barriers || line == "barrier" || line == "nobarrier";
    says_discards = says_discards || line == "discard" || line == "nodiscard";
    journal = journal || line.starts_with("data=");
    if (contains(kUnusual, line) && mount.options.count(line) == 0) {
      unshown.in_force.insert(line);
    }
  }
  unshown.complete = says_barriers && says_discards;
  if (unshown.complete) {
    unshown.journal = journal;
  }
}

/// Options in force that mountinfo does not show, because the file system's own super block asks for them.
/// `volume`: the kernel's name of what the mount lies on. `pool_directory`: of a bcachefs in sysfs, or empty.
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
    for (const std::string& member : sysfs::names_in(pool_directory)) {
      if (sysfs::read_number(pool_directory + "/" + member + "/discard") == std::uint64_t{1}) {
        unshown.in_force.insert("discard");
      }
    }
  }
  return unshown;
}

constexpr std::array kPooled{"btrfs", "bcachefs"};
constexpr std::string_view kDevDirectory = "/dev/";

/// xfs names its other devices in its options; only who may mount it on a disk can choose them.
std::vector<std::string> other_nodes(const Mount& mount) {
  std::vector<std::string> nodes;
  for (const std::string_view key : {"logdev=", "rtdev="}) {
    for (const std::string& option : mount.options) {
      if (mount.fstype == "xfs" && option.starts_with(key)) {
        nodes.push_back(option.substr(key.size()));
      }
    }
  }
  return nodes;
}

/// Which disks and partitions a mounted file system lies on directly. Follows the kernel's own links: the number of its
/// super block, or its members in sysfs.
///
/// The type of a file system comes from the kernel, but its source is whatever the caller of mount(2) wrote, which
/// never counts. Only for btrfs and bcachefs does the kernel write the source, too, the paths by which the members
/// became known: these choose among the file systems that sysfs lists, with all their members.
class VolumesBelow {
 public:
  /// `mounts`: one for each super block; they, `stacking` and `roots` must outlive this.
  VolumesBelow(const std::vector<Mount>& mounts, const Stacking& stacking, const InventoryRoots& roots);

  /// Their links in sysfs, as text; of xfs, with its log and realtime devices. Empty for a file system without a disk.
  /// What should lie on a disk that is not found is a line in `warnings`.
  [[nodiscard]] std::vector<std::string> of(const Mount& mount, std::vector<std::string>& warnings) const;

  /// The link in sysfs of a block device by the path of its node, which may be a link itself; empty if unknown. Where
  /// there is no such node, as in a sandbox, the kernel's name or that of device-mapper must be in the path.
  [[nodiscard]] std::string of_node(const std::string& path) const;

  /// Below sys/fs, of a btrfs or bcachefs; empty if unknown.
  [[nodiscard]] std::string pool_directory(const Mount& mount) const;

 private:
  /// A file system over several devices. Its super block has a made-up number, so sysfs does not say which mount it is.
  struct Pool {
    std::string id;
    std::vector<std::string> members;  // links
  };
  void find_pools(const std::string& fstype, const std::vector<Mount>& mounts);
  [[nodiscard]] std::vector<Pool> read_pools(const std::string& fstype) const;
  [[nodiscard]] std::vector<std::string> source_paths(const Mount& mount) const;
  [[nodiscard]] std::vector<std::string> pool_members(const Mount& mount) const;

  const Stacking& stacking_;
  const InventoryRoots& roots_;
  std::map<std::string, std::vector<Pool>> pools_;   // by type
  std::map<std::string, std::size_t> pool_numbers_;  // in pools_, by the super block's number
};

VolumesBelow::VolumesBelow(const std::vector<Mount>& mounts, const Stacking& stacking, const InventoryRoots& roots)
    : stacking_(stacking), roots_(roots) {
  for (const char* fstype : kPooled) {
    find_pools(fstype, mounts);
  }
}

std::string VolumesBelow::of_node(const std::string& path) const {
  if (!path.starts_with(kDevDirectory)) {
    return {};
  }
  const std::string name = path.substr(kDevDirectory.size());
  const std::string node = roots_.dev + "/" + name;
  struct stat status {};
  if (::stat(node.c_str(), &status) == 0 && S_ISBLK(status.st_mode)) {
    return sysfs::link_target(
        fmt::format("{}/dev/block/{}:{}", roots_.sys, major(status.st_rdev), minor(status.st_rdev)));
  }
  for (const std::string& candidate : {name, std::string(sysfs::base_name(sysfs::link_target(node)))}) {
    const std::string disk = candidate.empty() ? std::string() : stacking_.disk_of_node(candidate);
    if (!disk.empty()) {
      const bool by_mapper = candidate.starts_with("mapper/");
      return sysfs::link_target(roots_.sys + "/class/block/" + (by_mapper ? disk : sysfs::to_sysfs_name(candidate)));
    }
  }
  return {};
}

/// btrfs has DEVICES/NAME, bcachefs dev-N/block.
std::vector<VolumesBelow::Pool> VolumesBelow::read_pools(const std::string& fstype) const {
  std::vector<Pool> pools;
  const std::string all = roots_.sys + "/fs/" + fstype;
  for (const std::string& id : sysfs::names_in(all)) {
    Pool pool{id, {}};
    const bool has_list = fstype == "btrfs";
    const std::string directory = all + "/" + id + (has_list ? "/devices" : "");
    for (const std::string& name : sysfs::names_in(directory)) {
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
  if (mount.device_number.starts_with("0:")) {
    if (!contains(kPooled, mount.fstype)) {
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

constexpr std::size_t kMaxMountinfoBytes = 16U << 20U;
constexpr std::size_t kMaxSwapsBytes = 1U << 16U;

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

bool is_octal(char c) { return c >= '0' && c <= '7'; }

/// The kernel writes blank, tab, newline, backslash and '#' as a backslash and three octal digits.
std::string unescape(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size() && is_octal(text[i + 1]) && is_octal(text[i + 2]) &&
        is_octal(text[i + 3])) {
      plain.push_back(static_cast<char>(((text[i + 1] - '0') << 6) | ((text[i + 2] - '0') << 3) | (text[i + 3] - '0')));
      i += 3;
    } else {
      plain.push_back(text[i]);
    }
  }
  return plain;
}

/// btrfs also spells it discard=async.
bool has_discard(std::string_view super_options) {
  const auto options = split(super_options, ',');
  return std::any_of(options.begin(), options.end(),
                     [](std::string_view option) { return option == "discard" || option.starts_with("discard="); });
}

std::optional<Mount> parse_line(std::string_view line) {
  enum : std::size_t { kId, kParent, kDeviceNumber, kRoot, kMountpoint, kOptions, kOptionalFields };
  const auto fields = split(line, ' ');
  if (fields.size() < kOptionalFields) {
    return std::nullopt;
  }
  // Any number of optional fields, then a hyphen, then type, source and options of the super block.
  const auto hyphen = std::find(std::next(fields.begin(), kOptionalFields), fields.end(), "-");
  if (std::distance(hyphen, fields.end()) < 4) {
    return std::nullopt;
  }
  Mount mount;
  mount.id = fields[kId];
  mount.parent = fields[kParent];
  mount.device_number = fields[kDeviceNumber];
  mount.root = unescape(fields[kRoot]);
  mount.mountpoint = unescape(fields[kMountpoint]);
  mount.fstype = unescape(*std::next(hyphen, 1));
  mount.source = unescape(*std::next(hyphen, 2));
  mount.discard = has_discard(*std::next(hyphen, 3));
  // A comma within an option is escaped, too: options are split first.
  for (const std::string_view list : {fields[kOptions], *std::next(hyphen, 3)}) {
    for (const std::string_view option : split(list, ',')) {
      mount.options.insert(unescape(option));
    }
  }
  return mount;
}

/// The disks at the bottom under volumes, by their links in sysfs.
std::set<std::string> disks_below(const std::vector<std::string>& paths, const Stacking& stacking) {
  std::set<std::string> disks;
  for (const std::string& path : paths) {
    if (const std::string disk = stacking.disk_of_path(path); !disk.empty()) {
      disks.merge(stacking.disks_under(disk));
    }
  }
  return disks;
}

/// Whether there is room for its name on each of these disks.
bool may_be_named(const std::set<std::string>& disks, const Uses& uses) {
  const auto& named = uses.filesystems;
  return uses.named < kMaxFilesystems && std::all_of(disks.begin(), disks.end(), [&](const std::string& disk) {
           return std::count_if(named.begin(), named.end(), [&](const auto& one) { return one.device == disk; }) <
                  static_cast<std::ptrdiff_t>(kMaxFilesystemsOfDisk);
         });
}

void add_filesystems(const Mount& mount, const VolumesBelow& below, const Stacking& stacking,
                     const InventoryRoots& roots, const std::set<std::string>& chosen, Uses& uses) {
  const auto paths = below.of(mount, uses.warnings);
  auto disks = disks_below(paths, stacking);
  std::erase_if(disks, [&](const std::string& disk) { return chosen.count(disk) == 0; });
  if (disks.empty()) {
    return;
  }
  if (!may_be_named(disks, uses)) {
    ++uses.unnamed.in_all;
    std::for_each(disks.begin(), disks.end(), [&](const std::string& disk) { ++uses.unnamed.by_device[disk]; });
    return;
  }
  ++uses.named;
  std::vector<std::string> volumes;
  for (const std::string& path : paths) {
    if (!stacking.disk_of_path(path).empty()) {
      volumes.emplace_back(sysfs::base_name(path));
    }
  }
  const auto unshown = read_unshown_options(mount, volumes.front(), below.pool_directory(mount), roots);
  std::set<util::OutsideText> options(mount.options.begin(), mount.options.end());
  options.insert(unshown.in_force.begin(), unshown.in_force.end());
  const bool discard = mount.discard || unshown.in_force.count("discard") > 0;
  for (const std::string& disk : disks) {
    uses.filesystems.push_back(
        {disk, mount.mountpoint, mount.fstype, discard, volumes, options, mount.device_number, unshown});
  }
}

/// One line of proc/swaps: the path, whether it is a partition or a file, its size and use, separated by blanks or
/// tabs.
std::optional<model::Swap> read_swap(std::string_view line, const std::vector<Mount>& all, const VolumesBelow& below,
                                     const Stacking& stacking) {
  const std::size_t end = line.find_first_of(" \t");
  if (line.substr(0, 1) != "/" || end == std::string_view::npos) {
    return std::nullopt;
  }
  model::Swap swap{unescape(line.substr(0, end)), {}, true};
  const std::size_t type = std::min(line.find_first_not_of(" \t", end), line.size());
  std::vector<std::string> ignored;
  if (line.substr(type, 4) != "file") {
    swap.disks = disks_below({below.of_node(swap.name.raw())}, stacking);
    swap.known = !swap.disks.empty();
    return swap;
  }
  if (const Mount* mount = mount_of(swap.name.raw(), all)) {
    swap.disks = disks_below(below.of(*mount, ignored), stacking);
    swap.known = !swap.disks.empty() || mount->fstype.starts_with("nfs") || mount->fstype == "cifs";
  } else {
    swap.known = false;
  }
  return swap;
}

auto sort_key(const model::Filesystem& filesystem) { return std::tie(filesystem.device, filesystem.mountpoint); }

}  // namespace

std::vector<Mount> parse_mountinfo(std::string_view text) {
  std::vector<Mount> mounts;
  for (const std::string_view line : split(text, '\n')) {
    if (auto mount = parse_line(line)) {
      mounts.push_back(std::move(*mount));
    }
  }
  return mounts;
}

std::vector<Mount> one_for_each_filesystem(const std::vector<Mount>& mounts) {
  std::vector<Mount> chosen;
  std::unordered_map<std::string, std::size_t> by_number;
  for (const Mount& mount : mounts) {
    const auto [known, is_new] = by_number.emplace(mount.device_number, chosen.size());
    if (is_new) {
      chosen.push_back(mount);
    } else if (mount.root == "/" && chosen[known->second].root != "/") {
      chosen[known->second] = mount;
    }
  }
  return chosen;
}

const Mount* mount_of(std::string_view path, const std::vector<Mount>& mounts) {
  const auto leads_to = [&](const std::string& mountpoint) {
    return mountpoint == "/" || (path.substr(0, mountpoint.size()) == mountpoint &&
                                 (path.size() == mountpoint.size() || path[mountpoint.size()] == '/'));
  };
  const auto is_listed = [&](const std::string& id) {
    return std::any_of(mounts.begin(), mounts.end(), [&](const Mount& mount) { return mount.id == id; });
  };
  const Mount* found = nullptr;
  // As the kernel does: of the mounts on this one, the path meets the shortest first; others on the same directory lie
  // on that. A loop would need a reading while mounts move.
  for (std::size_t steps = 0; steps <= mounts.size(); ++steps) {
    const Mount* next = nullptr;
    for (const Mount& mount : mounts) {
      const bool is_on_it = found == nullptr
                                ? mount.mountpoint == "/" && (mount.parent == mount.id || !is_listed(mount.parent))
                                : mount.parent == found->id && mount.id != found->id;
      if (is_on_it && leads_to(mount.mountpoint) &&
          (next == nullptr || mount.mountpoint.size() < next->mountpoint.size())) {
        next = &mount;
      }
    }
    if (next == nullptr) {
      return found;
    }
    found = next;
  }
  return nullptr;
}

Uses read_uses(const Stacking& stacking, const InventoryRoots& roots, const std::set<std::string>& disks) {
  Uses uses;
  const auto mountinfo = util::read_file(roots.proc + "/self/mountinfo", kMaxMountinfoBytes);
  if (!mountinfo) {
    uses.warnings.push_back("mounted file systems are unknown: " + mountinfo.error().message);
  }
  const std::vector<Mount> all = parse_mountinfo(mountinfo.value_or(""));
  const std::vector<Mount> mounts = one_for_each_filesystem(all);
  const VolumesBelow below(mounts, stacking, roots);
  for (const Mount& mount : mounts) {
    add_filesystems(mount, below, stacking, roots, disks, uses);
  }
  const auto less = [](const auto& a, const auto& b) { return sort_key(a) < sort_key(b); };
  std::stable_sort(uses.filesystems.begin(), uses.filesystems.end(), less);
  // Of mounts over each other, the entry of the lower one stays: metrics must not repeat a pair.
  const auto same = [](const auto& a, const auto& b) { return sort_key(a) == sort_key(b); };
  uses.filesystems.erase(std::unique(uses.filesystems.begin(), uses.filesystems.end(), same), uses.filesystems.end());
  const auto swaps = util::read_file(roots.proc + "/swaps", kMaxSwapsBytes).value_or("");
  for (const std::string_view line : split(swaps, '\n')) {
    if (auto swap = read_swap(line, all, below, stacking)) {
      uses.swaps.push_back(std::move(*swap));
    }
  }
  return uses;
}

}  // namespace ssdpulse::host
