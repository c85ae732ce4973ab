// SPDX-License-Identifier: Apache-2.0
#include "daemon/drives/drive_io.h"

#include <algorithm>

namespace ssdpulse::drives {
namespace {

using model::Operation;

std::uint64_t losses_of(const model::DeviceIo& io) {
  return io.losses[model::index(model::Loss::completion_missed)] + io.losses[model::index(model::Loss::stray)];
}

/// Passthrough may write, but shows neither whether nor how much.
std::uint64_t activity_of(const model::DeviceIo& io) {
  const model::OperationIo& passthrough = io.operation(Operation::passthrough);
  return io.operation(Operation::write).bytes + io.operation(Operation::write_zeroes).bytes + passthrough.issues +
         passthrough.completions + passthrough.unissued_completions;
}

void add(model::BlockWrites& sum, const model::DeviceIo& io) {
  const auto in_flight = [&](Operation operation) {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(io.operation(operation).in_flight, 0));
  };
  sum.written_bytes += io.operation(Operation::write).bytes;
  sum.zeroed_bytes += io.operation(Operation::write_zeroes).bytes;
  sum.discarded_bytes += io.operation(Operation::discard).bytes;
  sum.losses += losses_of(io);
  sum.in_flight += in_flight(Operation::write);
  sum.erasing = sum.erasing || in_flight(Operation::write_zeroes) > 0 || in_flight(Operation::discard) > 0;
}

}  // namespace

DriveWrites writes_of(const nvme::NvmeSubsystem& drive, BlockLayer& block) {
  model::BlockWrites done;
  done.losses = block.skipped_runs();
  std::uint64_t activity = done.losses;
  std::uint64_t largest = 0;
  bool measured = !drive.namespaces.empty();
  bool sizes_known = measured;
  for (const model::NvmeNamespace& entry : drive.namespaces) {
    const auto io = block.device(entry.device);
    measured = measured && io != nullptr;
    if (io) {
      add(done, *io);
      activity += activity_of(*io) + losses_of(*io);
    }
    const auto most = block.largest_request_bytes(entry.device);
    sizes_known = sizes_known && most.has_value();
    largest = std::max(largest, most.value_or(0));
  }
  DriveWrites sum;
  if (measured) {
    sum.done = done;
    sum.activity = activity;
  }
  if (sizes_known) {
    sum.largest_request_bytes = largest;
  }
  return sum;
}

model::LatencyBuckets latency_buckets_of(const nvme::NvmeSubsystem& drive, BlockLayer& block) {
  model::LatencyBuckets sum;
  for (const model::NvmeNamespace& entry : drive.namespaces) {
    if (const auto io = block.device(entry.device)) {
      model::add(sum, model::device_time_buckets(*io, {Operation::read, Operation::write}));
    }
  }
  return sum;
}

}  // namespace ssdpulse::drives
