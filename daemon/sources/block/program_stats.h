// SPDX-License-Identifier: Apache-2.0
// What the kernel accounts for our programs, read through descriptors that are already open: no capability is needed.
#pragma once

#include <vector>

#include "daemon/model/snapshot.h"

struct bpf_object;

namespace ssdpulse::block {

/// Adds the statistics of the object's loaded programs.
void add_program_stats(const bpf_object* object, bool kernel_counts_skipped_runs,
                       std::vector<model::ProgramStats>& all);

}  // namespace ssdpulse::block
