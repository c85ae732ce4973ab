// SPDX-License-Identifier: Apache-2.0
// What is measured only for writes: their hints, who made them, how well they fit the disk.
// Counters exist from 0 for every present device, streams and histograms from their first sample.
#include <string>

#include "exporters/prometheus/families.h"
#include "exporters/prometheus/labels.h"

namespace ssdpulse::exposition {
namespace {

using model::Snapshot;
using model::WriteDetails;

// A device that is present but not measured yet counts from 0 too.
const WriteDetails kNothingYet{};

template <typename Visit>
void for_each_device(const Snapshot& snapshot, Visit visit) {
  for (const auto& device : snapshot.devices) {
    if (device.unseen) {
      continue;
    }
    visit(device.device->name, device.io ? device.io->writes : kNothingYet,
          device.io ? std::optional(device.io->since) : std::nullopt);
  }
}

template <typename Names, typename Select>
void add_counters_by(const Snapshot& snapshot, Samples& out, std::string_view label, const Names& names,
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

constexpr FamilyDescription kFamilies[] = {

    {"ssdpulse_write_hint_bytes_total", "Bytes of issued writes by the lifetime that the writer declared.", "bytes",
     Type::counter, Modes::full_only, kHintLabels, "",
     [](const Snapshot& s, Samples& out) {
       add_counters_by(
           s, out, "hint", model::kWriteHintNames,
           [](const WriteDetails& writes) -> const auto& { return writes.hint_bytes; });
     }},
    {"ssdpulse_write_hint_ios_total",
     "Issued writes by the lifetime that the writer declared. A merged write counts as its first part.", "ios",
     Type::counter, Modes::full_only, kHintLabels, "",
     [](const Snapshot& s, Samples& out) {
       add_counters_by(
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
       add_counters_by(
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

std::span<const FamilyDescription> write_families() { return kFamilies; }

}  // namespace ssdpulse::exposition
