// SPDX-License-Identifier: Apache-2.0
// Hierarchy: the cgroup hierarchy that the kernel charges I/O to: v1's blkio hierarchy if that is mounted, else v2's.
#pragma once

#include <optional>
#include <string>

#include "daemon/model/tenants.h"

namespace ssdpulse::cgroups {

struct Hierarchy {
  std::string directory;  // where it is mounted
  bool unified = true;    // v2
  bool whole = true;      // false in a cgroup namespace, or if only a part is mounted: not all are visible
};

/// Nothing if there is none, or mounts cannot be read. `proc`: usually /proc.
std::optional<Hierarchy> find_hierarchy(const std::string& proc);

/// v2: whether the root enables the io controller for its children; v1: whether there is any cgroup below the root.
/// `unknown` if the hierarchy is not whole or cannot be read.
model::IoAccounting accounting_of(const Hierarchy& hierarchy);

}  // namespace ssdpulse::cgroups
