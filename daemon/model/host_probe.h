// SPDX-License-Identifier: Apache-2.0
// HostProbe: what a host offers to the daemon, seen from outside while no daemon answers. Values only; what could not
// be read is absent, which never means zero or no.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ssdpulse::model {

/// How a place in the file system looks to the calling process.
struct PathProbe {
  std::string path;
  bool exists = false;
  bool directory = false;
  bool socket = false;
  bool readable = false;  // by the calling process; root may read and write all
  bool writable = false;
  std::optional<double> free_ratio;  // of its file system
  bool answers = true;               // false: its file system does not, and nothing else is known
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
  std::vector<PathProbe> drive_nodes;                         // /dev/nvmeN, one for each controller in sysfs
  std::optional<std::vector<std::uint16_t>> listening_ports;  // TCP, on any address; sorted
  std::optional<PathProbe> history_directory;                 // absent: none is configured
  std::optional<PathProbe> reader_socket;                     // absent: none is configured
};

}  // namespace ssdpulse::model
