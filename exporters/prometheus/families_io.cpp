// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "exporters/prometheus/families.h"

namespace ssdpulse::exposition {

// What requests did on each device. Counters exist from 0 for read and write of every present device, and for each
// other operation once it has occurred; histograms appear with their first sample.

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

// What is measured only for writes: their hints, who made them, how well they fit the disk.
// Counters exist from 0 for every present device, streams and histograms from their first sample.

namespace {

using model::Snapshot;
using model::WriteDetails;

// A device that is present but not measured yet counts from 0 too.
const WriteDetails kNoWritesYet{};

template <typename Visit>
void for_each_device(const Snapshot& snapshot, Visit visit) {
  for (const auto& device : snapshot.devices) {
    if (device.unseen) {
      continue;
    }
    visit(device.device->name, device.io ? device.io->writes : kNoWritesYet,
          device.io ? std::optional(device.io->since) : std::nullopt);
  }
}

template <typename Names, typename Select>
void add_write_counters_by(const Snapshot& snapshot, Samples& out, std::string_view label, const Names& names,
                           Select select) {
  for_each_device(snapshot, [&](const std::string& device, const WriteDetails& writes, const auto& since) {
    const auto& counts = select(writes);
    for (std::size_t i = 0; i < names.size(); ++i) {
      out.add({{"device", device}, {label, std::string(names[i])}}, to_double(counts[i]), since);
    }
  });
}

void hint_latency(const Snapshot& snapshot, Samples& out) {
  for_each_device(snapshot, [&](const std::string& device, const WriteDetails& writes, const auto& since) {
    for (std::size_t i = 0; i < model::kWriteHints; ++i) {
      if (!writes.hint_latency[i].empty()) {
        out.add({{"device", device}, {"hint", std::string(model::kWriteHintNames[i])}},
                to_histogram(writes.hint_latency[i]), since);
      }
    }
  });
}

void stream_bytes(const Snapshot& snapshot, Samples& out) {
  for_each_device(snapshot, [&](const std::string& device, const WriteDetails& writes, const auto& since) {
    for (const auto& [stream, bytes] : writes.stream_bytes) {
      out.add({{"device", device}, {"stream", std::to_string(stream)}}, to_double(bytes), since);
    }
  });
}

template <std::uint64_t WriteDetails::*Count>
void bytes(const Snapshot& snapshot, Samples& out) {
  for_each_device(snapshot, [&](const std::string& device, const WriteDetails& writes, const auto& since) {
    out.add({{"device", device}}, to_double(writes.*Count), since);
  });
}

void hint_path(const Snapshot& snapshot, Samples& out) {
  for (const auto& entry : snapshot.devices) {
    if (entry.hint_path) {
      out.add_info({{"device", entry.device->name},
                    {"kernel", std::string(name(entry.hint_path->kernel, model::kHintReachNames))},
                    {"drive", std::string(name(entry.hint_path->drive, model::kDriveSeparationNames))}});
    }
  }
}

constexpr LabelDescription kHintLabels[] = {kDevice,
                                            {"hint",
                                             "the lifetime declared with fcntl F_SET_RW_HINT; not_set: none was "
                                             "declared; unknown: this kernel does not show it",
                                             model::kWriteHintNames}};
constexpr LabelDescription kStreamLabels[] = {kDevice, {"stream", "the stream's number, from 1"}};
constexpr LabelDescription kHintPathLabels[] = {
    kDevice,
    {"kernel",
     "how far the kernel carries it; file_system_drops_buffered: ext4 loses those of buffered writes, so ssdpulse asks "
     "their file; drive: to the drive as a stream, for writes to the device itself",
     model::kHintReachNames},
    {"drive", "what the drive could do with it; directives: it may support streams", model::kDriveSeparationNames}};
constexpr LabelDescription kClassLabels[] = {
    kDevice,
    {"class",
     "journal, metadata: the file system; writeback: the page cache; direct: a process, past the page cache; other: "
     "cannot be determined",
     model::kWriteClassNames}};

constexpr FamilyDescription kWriteFamilies[] = {

    {"ssdpulse_write_hint_bytes_total", "Bytes of issued writes by the lifetime that the writer declared.", "bytes",
     Type::counter, Modes::full_only, kHintLabels, "",
     [](const Snapshot& s, Samples& out) {
       add_write_counters_by(
           s, out, "hint", model::kWriteHintNames,
           [](const WriteDetails& writes) -> const auto& { return writes.hint_bytes; });
     }},
    {"ssdpulse_write_hint_ios_total",
     "Issued writes by the lifetime that the writer declared. A merged write counts as its first part.", "ios",
     Type::counter, Modes::full_only, kHintLabels, "",
     [](const Snapshot& s, Samples& out) {
       add_write_counters_by(
           s, out, "hint", model::kWriteHintNames,
           [](const WriteDetails& writes) -> const auto& { return writes.hint_ios; });
     }},
    {"ssdpulse_write_hint_latency_seconds", "Device time of writes by the lifetime that the writer declared.",
     "seconds", Type::histogram, Modes::full_only, kHintLabels, "no write with this hint has completed", hint_latency},
    {"ssdpulse_write_stream_bytes_total", "Bytes of issued writes that name a write stream.", "bytes", Type::counter,
     Modes::full_only, kStreamLabels, "no write has named a stream; always before Linux 6.16", stream_bytes},
    {"ssdpulse_write_hint_path_info", "How far a write's lifetime hint travels; always 1.", "", Type::gauge, Modes::all,
     kHintPathLabels, "it is not known yet", hint_path},
    {"ssdpulse_write_class_bytes_total", "Bytes of issued writes by who made them.", "bytes", Type::counter,
     Modes::full_only, kClassLabels, "",
     [](const Snapshot& s, Samples& out) {
       add_write_counters_by(
           s, out, "class", model::kWriteClassNames,
           [](const WriteDetails& writes) -> const auto& { return writes.class_bytes; });
     }},
    {"ssdpulse_write_misaligned_bytes_total",
     "Bytes of writes that start off the disk's preferred write alignment or end off its preferred write granularity "
     "(NPWA and NPWG of an NVMe drive that reports them, otherwise the physical block).",
     "bytes", Type::counter, Modes::full_only, kDeviceLabels, "", bytes<&WriteDetails::misaligned_bytes>},
    {"ssdpulse_write_small_bytes_total", "Bytes of writes smaller than the disk's preferred write granularity.",
     "bytes", Type::counter, Modes::full_only, kDeviceLabels, "", bytes<&WriteDetails::small_bytes>},
};

}  // namespace

std::span<const FamilyDescription> write_families() { return kWriteFamilies; }

// Latency spikes of reads, writes, flushes and commits, by cause.
// Every cause is present from the start, at 0, for each operation of every present device.

namespace {

using model::Operation;
using model::Snapshot;
using model::SpikeFigures;

template <typename Value>
void for_each_cause(
    const Snapshot& snapshot, Samples& out, bool counter, Value value,
    bool (*known)(const model::Device&) = [](const model::Device&) { return true; }) {
  for (const auto& device : snapshot.devices) {
    if (device.unseen || !known(*device.device)) {
      continue;
    }
    const auto since = counter && device.io ? std::optional(device.io->since) : std::nullopt;
    for (const Operation operation : model::kSpikeOperations) {
      for (std::size_t cause = 0; cause < model::kSpikeCauses; ++cause) {
        out.add({{"device", device.device->name},
                 {"operation", std::string(name(operation))},
                 {"cause", std::string(model::kSpikeCauseNames[cause])}},
                value(device.spikes[operation], cause), since);
      }
    }
  }
}

constexpr LabelDescription kSpikeLabels[] = {
    kDevice,
    {"operation", "which latency spiked; commit: what a caller of fsync waits for", model::kSpikeOperationNames},
    {"cause", "what explains most of the slow time; unknown: nothing does", model::kSpikeCauseNames},
};

constexpr LabelDescription kOperationLabels[] = {kDevice, kSpikeLabels[1]};

constexpr FamilyDescription kSpikeFamilies[] = {

    {"ssdpulse_latency_spikes_total",
     "Latency spikes that are over, by final cause, which is known within 90 seconds of the end.", "", Type::counter,
     Modes::all, kSpikeLabels, "",
     [](const Snapshot& s, Samples& out) {
       for_each_cause(s, out, true,
                      [](const SpikeFigures& figures, std::size_t cause) { return to_double(figures.spikes[cause]); });
     }},
    {"ssdpulse_latency_spike_seconds_total", "Duration of those spikes.", "seconds", Type::counter, Modes::all,
     kSpikeLabels, "",
     [](const Snapshot& s, Samples& out) {
       for_each_cause(s, out, true,
                      [](const SpikeFigures& figures, std::size_t cause) { return figures.seconds[cause]; });
     }},
    {"ssdpulse_latency_excess_seconds_total",
     "Time that I/Os waited beyond what is usual, summed over I/Os. In a spike: what all of them took beyond the usual "
     "mean, counted once the cause is final. Outside spikes, as unknown: what those beyond the limit of a spike took.",
     "seconds", Type::counter, Modes::all, kSpikeLabels, "the kernel stamps no requests (queue/iostats is 0)",
     [](const Snapshot& s, Samples& out) {
       for_each_cause(
           s, out, true, [](const SpikeFigures& figures, std::size_t cause) { return figures.excess_seconds[cause]; },
           // If the kernel stamps no requests, no total latency is known.
           [](const model::Device& device) { return device.iostats; });
     }},
    {"ssdpulse_latency_spike_pending_excess_seconds",
     "Time that I/Os waited beyond what is usual in spikes whose cause is not final yet: not in the counter yet.",
     "seconds", Type::gauge, Modes::all, kOperationLabels, "the kernel stamps no requests (queue/iostats is 0)",
     [](const Snapshot& s, Samples& out) {
       for (const auto& device : s.devices) {
         for (const Operation operation : model::kSpikeOperations) {
           if (device.device->iostats && !device.unseen) {
             out.add({{"device", device.device->name}, {"operation", std::string(name(operation))}},
                     device.spikes[operation].pending_excess_seconds);
           }
         }
       }
     }},
    {"ssdpulse_latency_spike_active", "1 while a spike lasts, at the most likely cause so far.", "", Type::gauge,
     Modes::all, kSpikeLabels, "",
     [](const Snapshot& s, Samples& out) {
       for_each_cause(s, out, false, [](const SpikeFigures& figures, std::size_t cause) {
         return figures.active && index(*figures.active) == cause ? 1.0 : 0.0;
       });
     }},
};

}  // namespace

std::span<const FamilyDescription> spike_families() { return kSpikeFamilies; }

}  // namespace ssdpulse::exposition
