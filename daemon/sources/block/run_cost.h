// SPDX-License-Identifier: Apache-2.0
// measure_run_cost(): what a run of the block programs costs on this host. Needs the privileges to load programs; takes
// about 20 ms.
#pragma once

#include "daemon/model/own_cost.h"
#include "daemon/util/result.h"

namespace ssdpulse::block {

/// Measured with programs that do the same kind and amount of work (bpf/run_cost.bpf.c). It is an error if the kernel
/// refuses to run programs for the caller.
util::Result<model::RunCost> measure_run_cost(bool completion_only);

}  // namespace ssdpulse::block
