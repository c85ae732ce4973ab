// SPDX-License-Identifier: Apache-2.0
// HostProbe: what a host offers the daemon, found in one pass over sysfs, procfs and a few paths. Opens no drive, sends
// nothing, changes nothing, and keeps no state.
#pragma once

#include <string>

#include "daemon/model/host_settings.h"

namespace ssdpulse::host {

/// What the configuration names; empty: nothing.
struct ProbePaths {
  std::string history_directory;
  std::string reader_socket;
};

/// `root`: of the host's tree, with sys, proc and dev in it; empty: this host. Tests put a tree of their own there.
model::HostProbe probe_host(const std::string& root, const ProbePaths& paths);

/// As the host calls itself; empty: it has no name.
std::string host_name();

}  // namespace ssdpulse::host
