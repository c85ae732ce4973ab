// SPDX-License-Identifier: Apache-2.0
// HostSettings: how this host is set up for its disks: what the files in sysfs, procfs and /etc contain, verbatim.
// HostProbe: what it offers to the daemon, seen from outside while no daemon answers. What could not be read is absent,
// which never means zero or no. Values only.
#pragma once

#include <charconv>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "daemon/base/outside_text.h"
#include "daemon/base/tcp_listeners.h"
#include "daemon/model/device.h"

namespace ssdpulse::model {

/// Small files by their path, without surrounding blanks. What did not exist or was not readable is absent.
class Attributes {
 public:
  void set(std::string path, util::OutsideText text) { texts_[std::move(path)] = std::move(text); }

  /// Empty if absent.
  [[nodiscard]] util::OutsideText text(const std::string& path) const {
    const auto found = texts_.find(path);
    return found == texts_.end() ? util::OutsideText() : found->second;
  }
  /// The whole text as a decimal number; nothing if absent or anything else.
  [[nodiscard]] std::optional<std::uint64_t> number(const std::string& path) const {
    const std::string content = text(path).raw();
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(content.data(), content.data() + content.size(), value);
    return error == std::errc() && end == content.data() + content.size() ? std::optional(value) : std::nullopt;
  }
  /// Of "a [b] c", the b; of anything else, all of it.
  [[nodiscard]] util::OutsideText chosen(const std::string& path) const {
    const std::string content = text(path).raw();
    const auto open = content.find('[');
    const auto close = content.find(']', open == std::string::npos ? 0 : open);
    return open == std::string::npos || close == std::string::npos ? content
                                                                   : content.substr(open + 1, close - open - 1);
  }
  [[nodiscard]] bool has(const std::string& path) const { return texts_.count(path) != 0; }

 private:
  std::map<std::string, util::OutsideText> texts_;
};

struct PartitionSettings {
  std::string name;
  std::uint64_t start_bytes = 0;
  std::uint64_t size_bytes = 0;
};

/// A measured disk, or an md or dm device above measured disks.
struct DiskSettings {
  Device device;
  Attributes files;       // below its directory in sysfs: queue/scheduler; of its NVMe paths: paths/nvme0c1n1/stat
  Attributes controller;  // of NVMe: below /sys/class/nvme/<controller_name>
  std::string controller_name = {};
  std::vector<PartitionSettings> partitions = {};
  std::vector<std::string> disks = {};  // of an array: the measured ones below
  /// Of a dm-crypt volume, by their names in its table; nothing: the table could not be read.
  std::optional<std::set<std::string>> crypt_flags = {};
};

/// What a file system or an array may lie on: the disk, then its partitions.
inline std::vector<std::string> names_of_volumes(const DiskSettings& disk) {
  std::vector<std::string> names{disk.device.name};
  for (const PartitionSettings& partition : disk.partitions) {
    names.push_back(partition.name);
  }
  return names;
}

struct MountSettings {
  util::OutsideText mountpoint;
  util::OutsideText fstype;
  std::set<util::OutsideText> options;  // of the mount and of the super block
  std::vector<std::string> volumes;     // directly below
  std::vector<std::string> disks;       // measured ones
  std::optional<double> used_ratio{};   // of what unprivileged users may fill
  bool answers = true;                  // false: its file system does not, within the time allowed
  UnshownOptions unshown{};
};

/// A systemd timer, according to its unit files and the links that enable it.
struct TimerSettings {
  std::optional<bool> enabled;      // nothing: there is no systemd, or it is not visible
  util::OutsideText calendar = {};  // the last OnCalendar=, over all drop-ins
  util::OutsideText delay = {};     // RandomizedDelaySec=
};

/// The settings that administrators change on a device or the host, by their names in the history.
struct RecordedSettings {
  std::string device;  // the kernel's name; empty: of the host
  /// By name, such as scheduler; what could not be read is not here.
  std::map<util::OutsideText, util::OutsideText> values;
};

struct HostSettings {
  std::vector<DiskSettings> disks;    // measured ones
  std::vector<DiskSettings> arrays;   // md and dm devices above them
  std::vector<MountSettings> mounts;  // of file systems on them
  Attributes files;                   // by path from the root, without the leading slash: proc/sys/vm/dirty_ratio
  std::optional<double> uptime_seconds{};
  std::optional<std::uint64_t> memory_bytes{};
  std::optional<std::uint32_t> cpus{};
  std::vector<Swap> swaps{};                          // zram among them
  std::vector<util::OutsideText> virtual_machines{};  // command lines of QEMU, as in procfs; empty: not readable
  /// Files below the cgroup tree that limit I/O, and their content.
  std::map<util::OutsideText, util::OutsideText> cgroup_limits{};
  TimerSettings fstrim{};
};

/// What the calling process can do with a path.
struct PathProbe {
  std::string path;
  bool exists = false;
  bool directory = false;
  bool socket = false;
  bool readable = false;  // by the calling process; root may read and write all
  bool writable = false;
  std::optional<std::uint64_t> free_bytes;  // of its file system
  bool answers = true;                      // false: its file system does not, and nothing else is known
  std::uint64_t files_bytes = 0;            // of the files in a directory
};

struct HostProbe {
  std::string kernel;                       // release, as uname reports it
  std::optional<bool> kernel_types;         // BTF of the kernel
  std::optional<std::uint64_t> privileges;  // effective capabilities of the caller, one bit each (linux/capability.h)
  std::string lockdown;                     // none, integrity, confidentiality; empty: not known
  std::optional<std::uint64_t> locked_memory_bytes;  // limit; absent: none, or not known
  std::optional<std::int64_t> bpf_jit_enable;        // 0: programs are interpreted
  std::optional<std::int64_t> kptr_restrict;
  std::optional<std::int64_t> perf_event_paranoid;
  std::vector<PathProbe> drive_nodes;  // /dev/nvmeN, one for each controller in sysfs
  std::optional<std::vector<util::TcpListener>> listeners;
  std::optional<PathProbe> history_directory;  // absent: none is configured
  std::optional<PathProbe> reader_socket;      // absent: none is configured
};

}  // namespace ssdpulse::model
