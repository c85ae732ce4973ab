// SPDX-License-Identifier: Apache-2.0
// Which hierarchy of cgroups does the kernel charge I/O to, and where is it mounted?
// That of v1's blkio where it is mounted, else v2's.
#pragma once

#include <optional>
#include <string>

#include "daemon/model/tenants.h"

namespace ssdpulse::cgroups {

struct Hierarchy {
  std::string directory;  // where it is mounted
  bool unified = true;    // v2
  bool whole = true;      // false in a namespace of cgroups, and where a part is mounted: others are not seen
};

/// Nothing where there is none, or mounts cannot be read. `proc`: usually /proc.
std::optional<Hierarchy> find_hierarchy(const std::string& proc);

/// v2: whether the root hands the io controller down; v1: whether there is a cgroup at all.
model::IoAccounting accounting_of(const Hierarchy& hierarchy);

}  // namespace ssdpulse::cgroups
