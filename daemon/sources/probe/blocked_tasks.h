// SPDX-License-Identifier: Apache-2.0
// BlockedTask: a task that waits in state D, and in which function of the kernel. For commands run as root: the service
// does not see other users' processes, and others may not read where they wait.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "daemon/util/outside_text.h"

namespace ssdpulse::probe {

struct BlockedTask {
  std::string task;  // number of the thread
  util::OutsideText name;
  util::OutsideText waits_in;  // empty: not known
};

/// At most `most` of them. `proc`: usually /proc.
std::vector<BlockedTask> blocked_tasks(const std::string& proc, std::size_t most);

}  // namespace ssdpulse::probe
