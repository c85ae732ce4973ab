// SPDX-License-Identifier: Apache-2.0
// What requests did on each device, and the latency spikes among them.
#include <string>

#include "daemon/model/write_ladder.h"
#include "exporters/prometheus/families.h"

namespace ssdpulse::exposition {
namespace {

using model::DeviceSnapshot;
using model::Operation;
using model::OperationIo;
using model::Snapshot;
using model::SpikeFigures;
using model::WriteDetails;
using Since = std::optional<model::WallTime>;

// A device that is present but not measured yet counts from 0 too; one that is unseen has no counts.
const model::DeviceIo kNothingYet{};

// Requests. Counters exist from 0 for read and write of every present device, and for each other operation once it has
// occurred; histograms appear with their first sample.

/// For each such operation: visit(labels, operation, io, since).
template <typename Visit>
void for_each_operation(const Snapshot& snapshot, Visit visit) {
  for_each_seen_device(snapshot, [&](const DeviceSnapshot& device, const Since& since) {
    const auto& io = device.io ? *device.io : kNothingYet;
    for (std::size_t i = 0; i < model::kOperations; ++i) {
      const auto operation = static_cast<Operation>(i);
      if (operation == Operation::read || operation == Operation::write || io.operations[i].active) {
        visit(Labels{{"device", device.device->name}, {"operation", std::string(name(operation))}}, operation,
              io.operations[i], since);
      }
    }
  });
}

template <auto OperationIo::*Histogram>
void histograms(const Snapshot& snapshot, Samples& out) {
  for_each_operation(snapshot, [&](Labels labels, Operation, const OperationIo& io, const Since& since) {
    if (!(io.*Histogram).empty()) {
      out.add(std::move(labels), to_histogram(io.*Histogram), since);
    }
  });
}

template <std::uint64_t OperationIo::*Count>
void counters(const Snapshot& snapshot, Samples& out) {
  for_each_operation(snapshot, [&](Labels labels, Operation, const OperationIo& io, const Since& since) {
    out.add(std::move(labels), to_double(io.*Count), since);
  });
}

/// One counter for each value of an enum: `names` are the values of the label.
template <typename Names, typename Counts>
void add_counters_by(const Snapshot& snapshot, Samples& out, std::string_view label, const Names& names,
                     Counts OperationIo::*counts) {
  for_each_operation(snapshot, [&](const Labels& labels, Operation, const OperationIo& io, const Since& since) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      out.add(with(labels, {{label, std::string(names[i])}}), to_double((io.*counts)[i]), since);
    }
  });
}

void errors(const Snapshot& snapshot, Samples& out) {
  add_counters_by(snapshot, out, "error", model::kIoErrorNames, &OperationIo::errors);
}

void requeues(const Snapshot& snapshot, Samples& out) {
  add_counters_by(snapshot, out, "reason", model::kRequeueReasonNames, &OperationIo::requeues);
}

void device_latency(const Snapshot& snapshot, Samples& out) {
  for_each_operation(snapshot, [&](const Labels& labels, Operation, const OperationIo& io, const Since& since) {
    for (std::size_t i = 0; i < model::kDurings; ++i) {
      if (!io.device_latency[i].empty()) {
        out.add(with(labels, {{"during", std::string(model::kDuringNames[i])}}), to_histogram(io.device_latency[i]),
                since);
      }
    }
  });
}

// Only here are commits an operation of their own: elsewhere they count as the writes and flushes that they consist of.
void total_latency(const Snapshot& snapshot, Samples& out) {
  histograms<&OperationIo::total_latency>(snapshot, out);
  for (const auto& device : snapshot.devices) {
    if (device.io && !device.io->commit_latency.empty()) {
      out.add({{"device", device.device->name}, {"operation", "commit"}}, to_histogram(device.io->commit_latency),
              device.io->since);
    }
  }
}

void sequential_bytes(const Snapshot& snapshot, Samples& out) {
  for_each_operation(snapshot, [&](Labels labels, Operation operation, const OperationIo& io, const Since& since) {
    if (operation == Operation::read || operation == Operation::write) {
      out.add(std::move(labels), to_double(io.sequential_bytes), since);
    }
  });
}

void in_flight(const Snapshot& snapshot, Samples& out) {
  for_each_operation(snapshot, [&](Labels labels, Operation, const OperationIo& io, const Since& since) {
    if (since) {
      out.add(std::move(labels), static_cast<double>(io.in_flight));
    }
  });
}

void queue_full_seconds(const Snapshot& snapshot, Samples& out) {
  for_each_operation(snapshot, [&](Labels labels, Operation, const OperationIo& io, const Since& since) {
    out.add(std::move(labels), to_seconds(io.queue_full_ns), since);
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

constexpr FamilyDescription kIoFamilies[] = {
    {"ssdpulse_io_device_latency_seconds",
     "Device time: from a request's last issue to the driver to its final completion.", device_latency, kDeviceLatency,
     kNoSample, Modes::full_only, Type::histogram},
    {"ssdpulse_io_queue_latency_seconds",
     "Queue time: from a request's allocation to its first issue to the driver (scheduler and dispatch).",
     histograms<&OperationIo::queue_latency>, kDeviceOperationLabels, kNoStampedSample, Modes::full_only,
     Type::histogram},
    {"ssdpulse_io_latency_seconds",
     "Total time: from a request's allocation to its final completion. Waiting for a free tag, throttling and device "
     "mapper come before the allocation and are not included. Operation commit is what a caller of fsync waits for: a "
     "whole flush sequence, or a FUA write. Its parts also count as write and flush, so leave it out of sums over "
     "operations.",
     total_latency, kTotalLatency, kNoStampedSample, Modes::all, Type::histogram},
    {"ssdpulse_io_size_bytes", "Size of requests as the disk received them, after merging and splitting.",
     histograms<&OperationIo::size>, kDeviceOperationLabels, kNoSample, Modes::all, Type::histogram},
    {"ssdpulse_io_bytes_total", "Bytes completed, including those of partial completions.",
     counters<&OperationIo::bytes>, kDeviceOperationLabels, kNoneYet},
    {"ssdpulse_io_sequential_bytes_total",
     "Bytes issued exactly where an earlier request of the same operation ended, also among interleaved streams.",
     sequential_bytes, kSequential},
    {"ssdpulse_io_in_flight", "Requests issued to the driver and not yet completed.", in_flight, kDeviceOperationLabels,
     "the disk has not been measured yet", Modes::full_only},
    {"ssdpulse_io_queue_full_seconds_total",
     "Time during which a request waited because all tags of the disk were taken. Credited to the operation whose "
     "completion ended the wait.",
     queue_full_seconds, kDeviceOperationLabels, kNoneYet, Modes::full_only},
    {"ssdpulse_io_errors_total", "Requests that completed with an error.", errors, kErrors, kNoneYet},
    {"ssdpulse_io_requeues_total", "Requests that were issued again.", requeues, kRequeues, kNoneYet, Modes::full_only},
    {"ssdpulse_io_unissued_completions_total",
     "Requests that completed without ever reaching the driver, such as the parents of flush sequences. They are in no "
     "histogram.",
     counters<&OperationIo::unissued_completions>, kDeviceOperationLabels, kNoneYet},
    {"ssdpulse_io_diskless_requests_total",
     "Requests completed on queues without a disk: NVMe admin commands, SCSI probing. They are in no other series.",
     [](const Snapshot& s, Samples& out) { out.add({}, to_double(s.diskless_requests), daemon_start(s)); }},
};

// What is measured only for writes: their hints, who made them, how well they fit the disk. Counters exist from 0 for
// every present device, streams and histograms from their first sample.

/// visit(device, writes, since)
template <typename Visit>
void for_each_write_device(const Snapshot& snapshot, Visit visit) {
  for_each_seen_device(snapshot, [&](const DeviceSnapshot& device, const Since& since) {
    visit(device.device->name, device.io ? device.io->writes : kNothingYet.writes, since);
  });
}

template <typename Names, typename Counts>
void add_write_counters_by(const Snapshot& snapshot, Samples& out, std::string_view label, const Names& names,
                           Counts WriteDetails::*counts) {
  for_each_write_device(snapshot, [&](const std::string& device, const WriteDetails& writes, const Since& since) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      out.add({{"device", device}, {label, std::string(names[i])}}, to_double((writes.*counts)[i]), since);
    }
  });
}

void hint_bytes(const Snapshot& snapshot, Samples& out) {
  add_write_counters_by(snapshot, out, "hint", model::kWriteHintNames, &WriteDetails::hint_bytes);
}

void hint_ios(const Snapshot& snapshot, Samples& out) {
  add_write_counters_by(snapshot, out, "hint", model::kWriteHintNames, &WriteDetails::hint_ios);
}

void class_bytes(const Snapshot& snapshot, Samples& out) {
  add_write_counters_by(snapshot, out, "class", model::kWriteClassNames, &WriteDetails::class_bytes);
}

void hint_latency(const Snapshot& snapshot, Samples& out) {
  for_each_write_device(snapshot, [&](const std::string& device, const WriteDetails& writes, const Since& since) {
    for (std::size_t i = 0; i < model::kWriteHints; ++i) {
      if (!writes.hint_latency[i].empty()) {
        out.add({{"device", device}, {"hint", std::string(model::kWriteHintNames[i])}},
                to_histogram(writes.hint_latency[i]), since);
      }
    }
  });
}

void stream_bytes(const Snapshot& snapshot, Samples& out) {
  for_each_write_device(snapshot, [&](const std::string& device, const WriteDetails& writes, const Since& since) {
    for (const auto& [stream, bytes] : writes.stream_bytes) {
      out.add({{"device", device}, {"stream", std::to_string(stream)}}, to_double(bytes), since);
    }
  });
}

template <std::uint64_t WriteDetails::*Bytes>
void write_bytes(const Snapshot& snapshot, Samples& out) {
  for_each_write_device(snapshot, [&](const std::string& device, const WriteDetails& writes, const Since& since) {
    out.add({{"device", device}}, to_double(writes.*Bytes), since);
  });
}

void hint_path(const Snapshot& snapshot, Samples& out) {
  for (const auto& entry : snapshot.devices) {
    if (entry.hint_path) {
      out.add_info({{"device", entry.device->name},
                    {"kernel", label_of(entry.hint_path->kernel, model::kHintReachNames)},
                    {"drive", label_of(entry.hint_path->drive, model::kDriveSeparationNames)}});
    }
  }
}

void ladder_bytes(const Snapshot& snapshot, Samples& out) {
  for (const model::RungBytes& one : model::ladder_of(snapshot).rungs) {
    out.add({{"rung", label_of(one.rung, model::kRungNames)},
             {"device", one.device},
             {"class", one.rung_class ? label_of(*one.rung_class, model::kRungClassNames) : ""}},
            one.bytes, one.since);
  }
}

void ladder_gaps(const Snapshot& snapshot, Samples& out) {
  for (const model::RungGap& one : model::ladder_of(snapshot).gaps) {
    out.add_info({{"rung", label_of(one.rung, model::kRungNames)},
                  {"device", one.device},
                  {"reason", label_of(one.reason, model::kRungGapReasonNames)}});
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

constexpr LabelDescription kRung{
    "rung",
    "application: written by processes, and swapped out of their memory; file_system: sent by file systems, swap and "
    "raw writers; drive: sent to drives, with what volumes add; reported: "
    "what NVMe drives say they received; media: what they say they wrote to their media",
    model::kRungNames};
constexpr LabelDescription kLadderLabels[] = {
    kRung,
    {"device",
     "a drive or, of file_system, also a volume; of reported and media the controller; empty: the host, of page_cache"},
    {"class",
     "of file_system: as of ssdpulse_write_class_bytes_total; other, too: of volumes; of application: page_cache: "
     "became dirty; direct, swap: on drives",
     model::kRungClassNames}};
constexpr LabelDescription kGapLabels[] = {
    kRung,
    {"device", "a drive or a volume; empty: the host"},
    {"reason",
     "volume_not_measured: its bios are not counted; carries_both: a file system and another volume; unknown_sender: "
     "volumes lie on it, and not all writes show whether one of them sent them; drive_not_measured: a volume lies on "
     "it; no_counter: it reports no writes to its media; direct_unknown: how much it got past the page cache cannot be "
     "determined; not_counted: the kernel does not say how much became dirty",
     model::kRungGapReasonNames}};

constexpr FamilyDescription kWriteFamilies[] = {
    {"ssdpulse_write_hint_bytes_total", "Bytes of issued writes by the lifetime that the writer declared.", hint_bytes,
     kHintLabels, kNeverAbsent, Modes::full_only},
    {"ssdpulse_write_hint_ios_total",
     "Issued writes by the lifetime that the writer declared. A merged write counts as its first part.", hint_ios,
     kHintLabels, kNeverAbsent, Modes::full_only},
    {"ssdpulse_write_hint_latency_seconds", "Device time of writes by the lifetime that the writer declared.",
     hint_latency, kHintLabels, "no write with this hint has completed", Modes::full_only, Type::histogram},
    {"ssdpulse_write_stream_bytes_total", "Bytes of issued writes that name a write stream.", stream_bytes,
     kStreamLabels, "no write has named a stream; always before Linux 6.16", Modes::full_only},
    {"ssdpulse_write_hint_path_info", "How far a write's lifetime hint travels; always 1.", hint_path, kHintPathLabels,
     "it is not known yet"},
    {"ssdpulse_write_class_bytes_total", "Bytes of issued writes by who made them.", class_bytes, kClassLabels,
     kNeverAbsent, Modes::full_only},
    {"ssdpulse_write_misaligned_bytes_total",
     "Bytes of writes that start off the disk's preferred write alignment or end off its preferred write granularity "
     "(NPWA and NPWG of an NVMe drive that reports them, otherwise the physical block).",
     write_bytes<&WriteDetails::misaligned_bytes>, kDeviceLabels, kNeverAbsent, Modes::full_only},
    {"ssdpulse_write_small_bytes_total", "Bytes of writes smaller than the disk's preferred write granularity.",
     write_bytes<&WriteDetails::small_bytes>, kDeviceLabels, kNeverAbsent, Modes::full_only},
    {"ssdpulse_write_ladder_bytes_total",
     "Bytes written on each rung of the way to the media. No byte is counted twice on a rung, so that each adds up "
     "over "
     "the host, and the ratio of two says what is added in between.",
     ladder_bytes, kLadderLabels, "it cannot be known: ssdpulse_write_ladder_gap_info says why"},
    {"ssdpulse_write_ladder_gap_info", "What a rung lacks, so that no ratio with it is right; always 1.", ladder_gaps,
     kGapLabels, "nothing is lacking"},
};

// Latency spikes of reads, writes, flushes and commits, by cause. Every cause is present from the start, at 0, for each
// operation of every present device.

/// If the kernel stamps no requests, no total latency is known.
bool has_total_latency(const DeviceSnapshot& device) { return device.device->iostats; }

template <typename Value>
void add_by_cause(const Snapshot& snapshot, Samples& out, Type type, Value value) {
  for_each_seen_device(snapshot, [&](const DeviceSnapshot& device, const Since& since) {
    for (const Operation operation : model::kSpikeOperations) {
      for (std::size_t cause = 0; cause < model::kSpikeCauses; ++cause) {
        out.add({{"device", device.device->name},
                 {"operation", std::string(name(operation))},
                 {"cause", std::string(model::kSpikeCauseNames[cause])}},
                value(device, device.spikes[operation], cause), type == Type::counter ? since : std::nullopt);
      }
    }
  });
}

void spikes(const Snapshot& snapshot, Samples& out) {
  add_by_cause(snapshot, out, Type::counter, [](const DeviceSnapshot&, const SpikeFigures& figures, std::size_t cause) {
    return to_double(figures.spikes[cause]);
  });
}

void spike_seconds(const Snapshot& snapshot, Samples& out) {
  add_by_cause(snapshot, out, Type::counter, [](const DeviceSnapshot&, const SpikeFigures& figures, std::size_t cause) {
    return figures.seconds[cause];
  });
}

void excess_seconds(const Snapshot& snapshot, Samples& out) {
  add_by_cause(snapshot, out, Type::counter,
               [](const DeviceSnapshot& device, const SpikeFigures& figures, std::size_t cause) {
                 return has_total_latency(device) ? std::optional(figures.excess_seconds[cause]) : std::nullopt;
               });
}

void pending_excess_seconds(const Snapshot& snapshot, Samples& out) {
  for_each_seen_device(snapshot, [&](const DeviceSnapshot& device, const Since&) {
    for (const Operation operation : model::kSpikeOperations) {
      if (has_total_latency(device)) {
        out.add({{"device", device.device->name}, {"operation", std::string(name(operation))}},
                device.spikes[operation].pending_excess_seconds);
      }
    }
  });
}

void spike_active(const Snapshot& snapshot, Samples& out) {
  add_by_cause(snapshot, out, Type::gauge, [](const DeviceSnapshot&, const SpikeFigures& figures, std::size_t cause) {
    return figures.active && index(*figures.active) == cause ? 1 : 0;
  });
}

constexpr LabelDescription kSpikeLabels[] = {
    kDevice,
    {"operation", "which latency spiked; commit: what a caller of fsync waits for", model::kSpikeOperationNames},
    {"cause", "what explains most of the slow time; unknown: nothing does", model::kSpikeCauseNames},
};

constexpr LabelDescription kOperationLabels[] = {kDevice, kSpikeLabels[1]};
constexpr std::string_view kUnstamped = "the kernel stamps no requests (queue/iostats is 0)";

constexpr FamilyDescription kSpikeFamilies[] = {
    {"ssdpulse_latency_spikes_total",
     "Latency spikes that are over, by final cause, which is known within 90 seconds of the end.", spikes,
     kSpikeLabels},
    {"ssdpulse_latency_spike_seconds_total", "Duration of those spikes.", spike_seconds, kSpikeLabels},
    {"ssdpulse_latency_excess_seconds_total",
     "Time that I/Os waited beyond what is usual, summed over I/Os. In a spike: what all of them took beyond the usual "
     "mean, counted once the cause is final. Outside spikes, as unknown: what those beyond the limit of a spike took.",
     excess_seconds, kSpikeLabels, kUnstamped},
    {"ssdpulse_latency_spike_pending_excess_seconds",
     "Time that I/Os waited beyond what is usual in spikes whose cause is not final yet: not in the counter yet.",
     pending_excess_seconds, kOperationLabels, kUnstamped},
    {"ssdpulse_latency_spike_active", "1 while a spike lasts, at the most likely cause so far.", spike_active,
     kSpikeLabels},
};

}  // namespace

std::span<const FamilyDescription> io_families() { return kIoFamilies; }
std::span<const FamilyDescription> write_families() { return kWriteFamilies; }
std::span<const FamilyDescription> spike_families() { return kSpikeFamilies; }

}  // namespace ssdpulse::exposition
