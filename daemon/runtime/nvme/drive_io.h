// SPDX-License-Identifier: Apache-2.0
// What did the block layer do on all namespaces of a drive?
#pragma once

#include <cstdint>
#include <optional>

#include "daemon/analysis/latency_words.h"
#include "daemon/runtime/block_layer.h"
#include "daemon/sources/nvme/controllers.h"

namespace ssdpulse::runtime {

/// Up to one moment. Absent, apart from the losses: not all namespaces are measured, or there is none.
struct DriveWrites {
  std::optional<std::uint64_t> bytes;
  /// Differs from an earlier one if anything was done that may have written.
  std::optional<std::uint64_t> activity;
  std::uint64_t losses = 0;                            // requests that may not have been counted
  std::optional<std::uint64_t> largest_request_bytes;  // of them
};
DriveWrites writes_of(const nvme::NvmeSubsystem& drive, BlockLayer& block);

/// Reads and writes by latency.
analysis::LatencyWords latency_words_of(const nvme::NvmeSubsystem& drive, BlockLayer& block);

/// What a row of history tells of the block layer: of the time between two of these.
struct DriveIo {
  analysis::LatencyWords reads;
  analysis::LatencyWords writes;
  std::uint64_t discarded_bytes = 0;
};
DriveIo io_of(const nvme::NvmeSubsystem& drive, BlockLayer& block);

}  // namespace ssdpulse::runtime
