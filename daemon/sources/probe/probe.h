// SPDX-License-Identifier: Apache-2.0
// Looks at what a host offers to the daemon: a pass over sysfs, procfs and a few places of the file system. Opens no
// drive, sends nothing, changes nothing, and keeps no state.
#pragma once

#include <string>

#include "daemon/model/host_probe.h"

namespace ssdpulse::probe {

/// Where the host begins; tests put a tree of their own there, with sys, proc and dev in it.
struct ProbeRoot {
  std::string directory;  // empty: this host
};

/// What the configuration names; empty: nothing.
struct ProbePlaces {
  std::string history_directory;
  std::string reader_socket;
};

model::HostProbe look(const ProbeRoot& root, const ProbePlaces& places);

}  // namespace ssdpulse::probe
