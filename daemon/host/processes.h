// SPDX-License-Identifier: Apache-2.0
// ProcessStats, CpuTimes, BlockedTask: what procfs shows about processes: what the daemon itself costs this host (the
// process_* metrics, `doctor --cost`), and which tasks wait in the kernel.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "daemon/base/outside_text.h"
#include "daemon/base/result.h"
#include "daemon/model/kernel_programs.h"
#include "daemon/model/snapshot.h"

namespace ssdpulse::host {

/// In seconds since the epoch. Separate, and to be called only once: the boot time is in /proc/stat, for which the
/// kernel sums up every interrupt of every CPU.
util::Result<double> read_process_start_time(const std::string& proc_root = "/proc");

/// All but the start time, which is passed through.
util::Result<model::ProcessStats> read_process_stats(double start_time_seconds, const std::string& proc_root = "/proc");

/// Of the calling process. Threads of which the kernel keeps no account in nanoseconds are left out.
model::CpuTimes read_cpu_times(const std::string& proc_root = "/proc");

/// A task that waits in state D, and in which function of the kernel. For commands run as root: the service does not
/// see other users' processes, and others may not read where they wait.
struct BlockedTask {
  std::string task;  // number of the thread
  util::OutsideText name;
  util::OutsideText waits_in;  // empty: not known
};

/// At most `max_tasks` of them. `proc`: usually /proc.
std::vector<BlockedTask> blocked_tasks(const std::string& proc, std::size_t max_tasks);

}  // namespace ssdpulse::host
