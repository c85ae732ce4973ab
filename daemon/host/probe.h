// SPDX-License-Identifier: Apache-2.0
// Checks what a host offers the daemon: one pass over sysfs, procfs and a few places in the file system. Opens no
// drive, sends nothing, changes nothing, and keeps no state.
#pragma once

#include <string>

#include "daemon/model/host_settings.h"

namespace ssdpulse::host {

/// The root of the host's tree; tests put a tree of their own there, with sys, proc and dev in it.
struct ProbeRoot {
  std::string directory;  // empty: this host
};

/// What the configuration names; empty: nothing.
struct ProbePaths {
  std::string history_directory;
  std::string reader_socket;
};

model::HostProbe probe_host(const ProbeRoot& root, const ProbePaths& places);

}  // namespace ssdpulse::host
