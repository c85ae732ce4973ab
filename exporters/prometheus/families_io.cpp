// SPDX-License-Identifier: Apache-2.0
// What requests did on each device. Counters exist from 0 for read and write of every present device, and for each
// other operation once it has occurred; histograms appear with their first sample.
#include <string>

#include "exporters/prometheus/families.h"
#include "exporters/prometheus/labels.h"

namespace ssdpulse::exposition {
namespace {

using model::Operation;
using model::OperationIo;
using model::Snapshot;

struct OperationView {
  const std::string& device;
  Operation operation;
  const OperationIo& io;
  std::optional<model::WallTime> since;

  [[nodiscard]] Labels labels(std::string_view more_name = {}, std::string_view more_value = {}) const {
    Labels labels{{"device", device}, {"operation", std::string(name(operation))}};
    if (!more_name.empty()) {
      labels.push_back({more_name, std::string(more_value)});
    }
    return labels;
  }
};

// A device that is present but not measured yet counts from 0 too; one that is unseen has no counts.
const model::DeviceIo kNothingYet{};

template <typename Visit>
void for_each_operation(const Snapshot& snapshot, Visit visit) {
  for (const auto& device : snapshot.devices) {
    if (device.unseen) {
      continue;
    }
    const auto& io = device.io ? *device.io : kNothingYet;
    for (std::size_t i = 0; i < model::kOperations; ++i) {
      const auto operation = static_cast<Operation>(i);
      if (operation == Operation::read || operation == Operation::write || io.operations[i].active) {
        visit(OperationView{device.device->name, operation, io.operations[i],
                            device.io ? std::optional(io.since) : std::nullopt});
      }
    }
  }
}

template <typename Select>
void add_histograms(const Snapshot& snapshot, Samples& out, Select select) {
  for_each_operation(snapshot, [&](const OperationView& view) {
    const auto& histogram = select(view.io);
    if (!histogram.empty()) {
      out.add(view.labels(), to_histogram(histogram), view.since);
    }
  });
}

template <typename Select>
void add_counters(const Snapshot& snapshot, Samples& out, Select select) {
  for_each_operation(snapshot, [&](const OperationView& view) { out.add(view.labels(), select(view.io), view.since); });
}

// One counter for each value of an enum: `names` gives the label's values, `counts` the numbers.
template <typename Names, typename Select>
void add_counters_by(const Snapshot& snapshot, Samples& out, std::string_view label, const Names& names,
                     Select select) {
  for_each_operation(snapshot, [&](const OperationView& view) {
    const auto& counts = select(view.io);
    for (std::size_t i = 0; i < names.size(); ++i) {
      out.add(view.labels(label, names[i]), to_double(counts[i]), view.since);
    }
  });
}

void device_latency(const Snapshot& snapshot, Samples& out) {
  for_each_operation(snapshot, [&](const OperationView& view) {
    for (std::size_t i = 0; i < model::kDurings; ++i) {
      const auto& latency = view.io.device_latency[i];
      if (!latency.empty()) {
        out.add(view.labels("during", model::kDuringNames[i]), to_histogram(latency), view.since);
      }
    }
  });
}

// Only here are commits an operation of their own: elsewhere they count as the writes and flushes that they consist of.
void total_latency(const Snapshot& snapshot, Samples& out) {
  add_histograms(
      snapshot, out, [](const OperationIo& io) -> const auto& { return io.total_latency; });
  for (const auto& device : snapshot.devices) {
    if (device.io && !device.io->commit_latency.empty()) {
      out.add({{"device", device.device->name}, {"operation", "commit"}}, to_histogram(device.io->commit_latency),
              device.io->since);
    }
  }
}

void sequential_bytes(const Snapshot& snapshot, Samples& out) {
  for_each_operation(snapshot, [&](const OperationView& view) {
    if (view.operation == Operation::read || view.operation == Operation::write) {
      out.add(view.labels(), to_double(view.io.sequential_bytes), view.since);
    }
  });
}

void in_flight(const Snapshot& snapshot, Samples& out) {
  for_each_operation(snapshot, [&](const OperationView& view) {
    if (view.since) {
      out.add(view.labels(), static_cast<double>(view.io.in_flight));
    }
  });
}

constexpr std::string_view kNoSample = "the disk has completed no such request";
constexpr std::string_view kNoStampedSample =
    "the disk has completed no such request, or the kernel keeps no statistics for it (queue/iostats is 0)";
constexpr std::string_view kNoneYet = "the disk has had no such request, except for read and write";

constexpr LabelDescription kDeviceLatency[] = {
    kDevice,
    kOperation,
    {"during", "what else was in flight on the disk at some time during a read or write", model::kDuringNames}};
constexpr LabelDescription kTotalLatency[] = {
    kDevice, {"operation", "what the request does, or commit", model::kOperationNames}};
constexpr LabelDescription kSequential[] = {kDevice, {"operation", "what the request does", kReadAndWrite}};
constexpr LabelDescription kErrors[] = {
    kDevice, kOperation, {"error", "the kernel's completion status, normalised", model::kIoErrorNames}};
constexpr LabelDescription kRequeues[] = {
    kDevice,
    kOperation,
    {"reason", "driver: the driver gave it back; failover: a multipath path failed", model::kRequeueReasonNames}};

constexpr FamilyDescription kFamilies[] = {

    {"ssdpulse_io_device_latency_seconds",
     "Device time: from a request's last issue to the driver to its final completion.", "seconds", Type::histogram,
     Modes::full_only, kDeviceLatency, kNoSample, device_latency},
    {"ssdpulse_io_queue_latency_seconds",
     "Queue time: from a request's allocation to its first issue to the driver (scheduler and dispatch).", "seconds",
     Type::histogram, Modes::full_only, kDeviceOperationLabels, kNoStampedSample,
     [](const Snapshot& s, Samples& out) {
       add_histograms(
           s, out, [](const OperationIo& io) -> const auto& { return io.queue_latency; });
     }},
    {"ssdpulse_io_latency_seconds",
     "Total time: from a request's allocation to its final completion. Waiting for a free tag, throttling and device "
     "mapper come before the allocation and are not included. Operation commit is what a caller of fsync waits for: a "
     "whole flush sequence, or a FUA write. Its parts also count as write and flush, so leave it out of sums over "
     "operations.",
     "seconds", Type::histogram, Modes::all, kTotalLatency, kNoStampedSample, total_latency},
    {"ssdpulse_io_size_bytes", "Size of requests as the disk received them, after merging and splitting.", "bytes",
     Type::histogram, Modes::all, kDeviceOperationLabels, kNoSample,
     [](const Snapshot& s, Samples& out) {
       add_histograms(
           s, out, [](const OperationIo& io) -> const auto& { return io.size; });
     }},
    {"ssdpulse_io_bytes_total", "Bytes completed, including those of partial completions.", "bytes", Type::counter,
     Modes::all, kDeviceOperationLabels, kNoneYet,
     [](const Snapshot& s, Samples& out) {
       add_counters(s, out, [](const OperationIo& io) { return to_double(io.bytes); });
     }},
    {"ssdpulse_io_sequential_bytes_total",
     "Bytes issued exactly where an earlier request of the same operation ended, also among interleaved streams.",
     "bytes", Type::counter, Modes::all, kSequential, "", sequential_bytes},
    {"ssdpulse_io_in_flight", "Requests issued to the driver and not yet completed.", "", Type::gauge, Modes::full_only,
     kDeviceOperationLabels, "the disk has not been measured yet", in_flight},
    {"ssdpulse_io_queue_full_seconds_total",
     "Time during which a request waited because all tags of the disk were taken. Credited to the operation whose "
     "completion ended the wait.",
     "seconds", Type::counter, Modes::full_only, kDeviceOperationLabels, kNoneYet,
     [](const Snapshot& s, Samples& out) {
       add_counters(s, out, [](const OperationIo& io) { return to_seconds(io.queue_full_ns); });
     }},
    {"ssdpulse_io_errors_total", "Requests that completed with an error.", "", Type::counter, Modes::all, kErrors,
     kNoneYet,
     [](const Snapshot& s, Samples& out) {
       add_counters_by(
           s, out, "error", model::kIoErrorNames, [](const OperationIo& io) -> const auto& { return io.errors; });
     }},
    {"ssdpulse_io_requeues_total", "Requests that were issued again.", "", Type::counter, Modes::full_only, kRequeues,
     kNoneYet,
     [](const Snapshot& s, Samples& out) {
       add_counters_by(
           s, out, "reason", model::kRequeueReasonNames,
           [](const OperationIo& io) -> const auto& { return io.requeues; });
     }},
    {"ssdpulse_io_unissued_completions_total",
     "Requests that completed without ever reaching the driver, such as the parents of flush sequences. They are in no "
     "histogram.",
     "", Type::counter, Modes::all, kDeviceOperationLabels, kNoneYet,
     [](const Snapshot& s, Samples& out) {
       add_counters(s, out, [](const OperationIo& io) { return to_double(io.unissued_completions); });
     }},
    {"ssdpulse_io_diskless_requests_total",
     "Requests completed on queues without a disk: NVMe admin commands, SCSI probing. They are in no other series.",
     "",
     Type::counter,
     Modes::all,
     {},
     "",
     [](const Snapshot& s, Samples& out) { out.add({}, to_double(s.diskless_requests), daemon_start(s)); }},
};

}  // namespace

std::span<const FamilyDescription> io_families() { return kFamilies; }

}  // namespace ssdpulse::exposition
