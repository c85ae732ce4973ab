// SPDX-License-Identifier: Apache-2.0
// mountinfo shows which super block is mounted where; VolumesBelow knows which disks that is.
#include "daemon/sources/inventory/filesystems.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>

#include "daemon/sources/inventory/unshown_options.h"
#include "daemon/sources/inventory/volumes_below.h"
#include "daemon/sources/sysfs.h"
#include "daemon/util/read_file.h"

namespace ssdpulse::inventory {

namespace sysfs = sources::sysfs;

namespace {

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
                     [](std::string_view option) { return option == "discard" || option.substr(0, 8) == "discard="; });
}

/// A comma within an option is escaped, too: options are split first.
void add_options(std::string_view list, std::set<std::string>& options) {
  for (const std::string_view option : split(list, ',')) {
    options.insert(unescape(option));
  }
}

std::optional<Mount> parse_line(std::string_view line) {
  constexpr std::size_t kId = 0;
  constexpr std::size_t kParent = 1;
  constexpr std::size_t kDeviceNumber = 2;
  constexpr std::size_t kRoot = 3;
  constexpr std::size_t kMountpoint = 4;
  constexpr std::size_t kOptions = 5;
  constexpr std::size_t kOptionalFields = 6;
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
  add_options(fields[kOptions], mount.options);
  add_options(*std::next(hyphen, 3), mount.options);
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
    swap.known = !swap.disks.empty() || mount->fstype.rfind("nfs", 0) == 0 || mount->fstype == "cifs";
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

}  // namespace ssdpulse::inventory
