// SPDX-License-Identifier: Apache-2.0
#include "daemon/runtime/nvme/drive_io.h"

#include <algorithm>

namespace ssdpulse::runtime {
namespace {

using model::Operation;

std::uint64_t losses_of(const model::DeviceIo& io) {
  return io.losses[model::index(model::Loss::completion_missed)] + io.losses[model::index(model::Loss::stray)];
}

/// Passthrough may write, and says neither whether nor how much.
std::uint64_t activity_of(const model::DeviceIo& io) {
  const model::OperationIo& passthrough = io.operation(Operation::passthrough);
  return io.operation(Operation::write).bytes + io.operation(Operation::write_zeroes).bytes + passthrough.issues +
         passthrough.completions + passthrough.unissued_completions;
}

}  // namespace

DriveWrites writes_of(const nvme::NvmeSubsystem& drive, BlockLayer& block) {
  DriveWrites sum;
  sum.losses = block.skipped_runs();
  std::uint64_t bytes = 0;
  std::uint64_t activity = sum.losses;
  std::uint64_t largest = 0;
  bool measured = !drive.namespaces.empty();
  bool sizes_known = measured;
  for (const model::NvmeNamespace& entry : drive.namespaces) {
    const auto io = block.device(entry.device);
    measured = measured && io != nullptr;
    if (io) {
      bytes += io->operation(Operation::write).bytes;
      activity += activity_of(*io) + losses_of(*io);
      sum.losses += losses_of(*io);
    }
    const auto most = block.largest_request_bytes(entry.device);
    sizes_known = sizes_known && most.has_value();
    largest = std::max(largest, most.value_or(0));
  }
  if (measured) {
    sum.bytes = bytes;
    sum.activity = activity;
  }
  if (sizes_known) {
    sum.largest_request_bytes = largest;
  }
  return sum;
}

analysis::LatencyWords latency_words_of(const nvme::NvmeSubsystem& drive, BlockLayer& block) {
  analysis::LatencyWords sum;
  for (const model::NvmeNamespace& entry : drive.namespaces) {
    if (const auto io = block.device(entry.device)) {
      analysis::add(sum, analysis::device_time_words(*io, {Operation::read, Operation::write}));
    }
  }
  return sum;
}

DriveIo io_of(const nvme::NvmeSubsystem& drive, BlockLayer& block) {
  DriveIo sum;
  for (const model::NvmeNamespace& entry : drive.namespaces) {
    if (const auto io = block.device(entry.device)) {
      analysis::add(sum.reads, analysis::device_time_words(*io, {Operation::read}));
      analysis::add(sum.writes, analysis::device_time_words(*io, {Operation::write}));
      sum.discarded_bytes += io->operation(Operation::discard).bytes;
    }
  }
  return sum;
}

}  // namespace ssdpulse::runtime
