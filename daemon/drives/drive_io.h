// SPDX-License-Identifier: Apache-2.0
// What did the block layer do on all namespaces of a drive?
#pragma once

#include <cstdint>
#include <optional>

#include "daemon/analysis/write_amplification/host_drift.h"
#include "daemon/drives/block_layer.h"
#include "daemon/model/latency_words.h"
#include "daemon/sources/nvme/controllers.h"

namespace ssdpulse::drives {

/// Totals up to one moment. Absent: not all namespaces are measured, or there is none.
struct DriveWrites {
  std::optional<analysis::BlockWrites> done;
  /// Differs from an earlier value if anything was done that may have written.
  std::optional<std::uint64_t> activity;
  std::optional<std::uint64_t> largest_request_bytes;
};
DriveWrites writes_of(const nvme::NvmeSubsystem& drive, BlockLayer& block);

/// Reads and writes by latency.
model::LatencyWords latency_words_of(const nvme::NvmeSubsystem& drive, BlockLayer& block);

}  // namespace ssdpulse::drives
