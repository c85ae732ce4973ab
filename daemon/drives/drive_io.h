// SPDX-License-Identifier: Apache-2.0
// DriveWrites: what the block layer wrote on all namespaces of a drive. latency_buckets_of(): how long I/O took there.
#pragma once

#include <cstdint>
#include <optional>

#include "daemon/model/drive_tick.h"
#include "daemon/drives/block_layer.h"
#include "daemon/model/latency_buckets.h"
#include "daemon/sources/nvme/controllers.h"

namespace ssdpulse::drives {

/// Totals up to one moment. Absent: not known for all namespaces, or the drive has none.
struct DriveWrites {
  std::optional<model::BlockWrites> done;
  /// Differs from an earlier value if anything was done that may have written.
  std::optional<std::uint64_t> activity;
  std::optional<std::uint64_t> largest_request_bytes;
};
DriveWrites writes_of(const nvme::NvmeSubsystem& drive, BlockLayer& block);

/// Device times of reads and writes on the namespaces that are measured.
model::LatencyBuckets latency_buckets_of(const nvme::NvmeSubsystem& drive, BlockLayer& block);

}  // namespace ssdpulse::drives
