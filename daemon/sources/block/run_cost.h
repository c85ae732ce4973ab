// SPDX-License-Identifier: Apache-2.0
// What does a run of the block programs cost on this host? Needs the rights to load programs; takes some 20 ms.
#pragma once

#include "daemon/model/own_cost.h"
#include "daemon/util/result.h"

namespace ssdpulse::block {

/// By programs that do work of the same kind and amount (bpf/run_cost.bpf.c). Kernels that refuse to run programs for
/// the caller are an error.
util::Result<model::RunCost> measure_run_cost(bool completion_only);

}  // namespace ssdpulse::block
