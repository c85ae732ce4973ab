// SPDX-License-Identifier: Apache-2.0
// Reads sysfs and procfs: small, bounded and forgiving. What cannot be read is absent, because disks appear and
// disappear. This is also where the names of block devices in sysfs are known.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/base/result.h"

namespace ssdpulse::sysfs {

/// An attribute as it is, at most a page; nothing if it cannot be read.
std::optional<std::string> read_raw(const std::string& path);

/// An attribute without surrounding blanks, at most 256 bytes of it; empty if it cannot be read. Other odd bytes stay.
std::string read_text(const std::string& path);

std::optional<std::uint64_t> read_number(const std::string& path);

std::string_view trim(std::string_view text);

/// Decimal, the whole text.
std::optional<std::uint64_t> parse_number(std::string_view text);

/// "MAJOR:MINOR"
std::optional<std::pair<std::uint32_t, std::uint32_t>> parse_device_number(std::string_view text);

/// The names in a directory, sorted, without . and ..
util::Result<std::vector<std::string>> list_directory(const std::string& path);

/// The same; none if the directory cannot be listed.
std::vector<std::string> names_in(const std::string& directory);

/// The words of a text, between blanks and newlines.
std::vector<std::string> words_in(const std::string& text);

/// Of "a [b] c", the b; empty if nothing is in brackets.
std::string chosen_in(const std::string& line);

/// The rest of the first line that begins with `label`.
std::optional<std::string_view> rest_of_line(std::string_view text, std::string_view label);

/// Where a symbolic link points; empty if it is not one.
std::string link_target(const std::string& path);

/// The last component of a path.
std::string_view base_name(std::string_view path);

/// The directory of a disk, hidden multipath paths included: <sys>/block/X, or below its NVMe controller where the
/// kernel does not list hidden disks. Nothing if there is no such disk.
std::optional<std::string> disk_directory(const std::string& sys_root, const std::string& disk_name);

/// nvme0c1n2: a hidden path. Its head is nvme0n2, whose first number is that of the NVMe subsystem.
std::optional<std::string> head_of_hidden_path(const std::string& disk_name);

/// The controller that an NVMe disk is read through, by the kernel's links: of several paths the lowest live one, else
/// the lowest. Empty if it has none. The number in the disk's name is its subsystem's, which need not be a
/// controller's.
std::string nvme_controller_of(const std::string& disk_directory);

/// Of device-mapper or md, by the disk's name.
inline bool is_dm(std::string_view disk) { return disk.starts_with("dm-"); }
inline bool is_md(std::string_view disk) { return disk.starts_with("md"); }

/// The kernel's gendisk names may hold a slash (cciss/c0d0) that sysfs shows as '!'.
std::string to_kernel_name(std::string sysfs_name);
std::string to_sysfs_name(std::string kernel_name);

}  // namespace ssdpulse::sysfs
