// SPDX-License-Identifier: Apache-2.0
// What the daemon itself costs this host: the process_* metrics, from /proc/self.
#pragma once

#include <string>

#include "daemon/model/snapshot.h"
#include "daemon/util/result.h"

namespace ssdpulse::process {

/// In seconds since the epoch. Separate, and to be called only once: the boot time is in /proc/stat, for which the
/// kernel sums up every interrupt of every CPU.
util::Result<double> read_process_start_time(const std::string& proc_root = "/proc");

/// All but the start time, which is passed through.
util::Result<model::ProcessStats> read_process_stats(double start_time_seconds, const std::string& proc_root = "/proc");

}  // namespace ssdpulse::process
