// SPDX-License-Identifier: Apache-2.0
// mountinfo shows which super block is mounted where; sysfs shows which disk that is. btrfs invents its own device
// numbers: there, the mount's source and btrfs' own list of members lead to the disks.
#include "daemon/sources/inventory/filesystems.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>

#include "daemon/sources/sysfs.h"

namespace ssdpulse::inventory {

namespace sysfs = sources::sysfs;

namespace {

constexpr std::string_view kDevDirectory = "/dev/";

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

/// All members of the btrfs that `node` belongs to, as links of sysfs; `node` itself is among them.
std::vector<std::string> btrfs_member_paths(const std::string& sys_root, const std::string& node) {
  const std::string all = sys_root + "/fs/btrfs";
  for (const std::string& id : sysfs::list_directory(all).value_or(std::vector<std::string>{})) {
    const std::string devices = all + "/" + id + "/devices";
    const auto members = sysfs::list_directory(devices).value_or(std::vector<std::string>{});
    if (std::binary_search(members.begin(), members.end(), node)) {
      std::vector<std::string> paths;
      std::transform(members.begin(), members.end(), std::back_inserter(paths),
                     [&](const std::string& member) { return sysfs::link_target(devices + "/" + member); });
      return paths;
    }
  }
  return {};
}

/// The link in sysfs of each disk or partition that the file system lies on directly.
std::vector<std::string> volume_paths(const Mount& mount, const Stacking& stacking, const std::string& sys_root) {
  if (mount.device_number.rfind("0:", 0) != 0) {
    return {sysfs::link_target(sys_root + "/dev/block/" + mount.device_number)};
  }
  if (mount.source.rfind(kDevDirectory, 0) != 0) {
    return {};
  }
  const std::string node = mount.source.substr(kDevDirectory.size());
  const std::string disk = stacking.disk_of_node(node);
  // dm members are listed as dm-N there, all others by their node's name.
  const std::string member = node.rfind("mapper/", 0) == 0 ? disk : sysfs::to_sysfs_name(node);
  std::vector<std::string> paths = btrfs_member_paths(sys_root, member);
  if (paths.empty() && !disk.empty()) {
    paths.push_back(sysfs::link_target(sys_root + "/class/block/" + member));
  }
  return paths;
}

void add_filesystems(const Mount& mount, const Stacking& stacking, const std::string& sys_root,
                     std::vector<model::Filesystem>& filesystems) {
  std::set<std::string> disks;
  std::vector<std::string> volumes;
  for (const std::string& path : volume_paths(mount, stacking, sys_root)) {
    if (const std::string disk = stacking.disk_of_path(path); !disk.empty()) {
      disks.merge(stacking.disks_under(disk));
      volumes.emplace_back(sysfs::base_name(path));
    }
  }
  for (const std::string& disk : disks) {
    filesystems.push_back(
        {disk, mount.mountpoint, mount.fstype, mount.discard, volumes, mount.options, mount.device_number});
  }
}

auto sort_key(const model::Filesystem& filesystem) { return std::tie(filesystem.device, filesystem.mountpoint); }

}  // namespace

std::vector<Mount> parse_mountinfo(std::string_view text) {
  std::vector<Mount> mounts;
  std::unordered_map<std::string, std::size_t> by_number;
  for (const std::string_view line : split(text, '\n')) {
    auto mount = parse_line(line);
    if (!mount) {
      continue;
    }
    const auto [known, is_new] = by_number.emplace(mount->device_number, mounts.size());
    if (is_new) {
      mounts.push_back(std::move(*mount));
    } else if (mount->root == "/" && mounts[known->second].root != "/") {
      mounts[known->second] = std::move(*mount);
    }
  }
  return mounts;
}

std::vector<model::Filesystem> filesystems_of(const std::vector<Mount>& mounts, const Stacking& stacking,
                                              const std::string& sys_root) {
  std::vector<model::Filesystem> filesystems;
  for (const Mount& mount : mounts) {
    add_filesystems(mount, stacking, sys_root, filesystems);
  }
  const auto less = [](const auto& a, const auto& b) { return sort_key(a) < sort_key(b); };
  std::stable_sort(filesystems.begin(), filesystems.end(), less);
  // Of mounts over each other, the entry of the lower one stays: metrics must not repeat a pair.
  const auto same = [](const auto& a, const auto& b) { return sort_key(a) == sort_key(b); };
  filesystems.erase(std::unique(filesystems.begin(), filesystems.end(), same), filesystems.end());
  return filesystems;
}

}  // namespace ssdpulse::inventory
