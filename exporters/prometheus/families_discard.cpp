// SPDX-License-Identifier: Apache-2.0
// Discards by what triggered them: their bursts on each device and array, and the bytes of each file system. Every
// trigger of every present device and mounted file system has a series from 0 on.
#include <string>

#include "exporters/prometheus/families.h"

namespace ssdpulse::exposition {
namespace {

using model::DiscardBursts;
using model::Snapshot;

template <typename Value>
void add_by_trigger(const Snapshot& snapshot, Samples& out, Type type, Value value) {
  for_each_seen_device(snapshot, [&](const model::DeviceSnapshot& device, const auto& since) {
    for (std::size_t i = 0; i < model::kDiscardTriggers; ++i) {
      out.add({{"device", device.device->name}, {"trigger", std::string(model::kDiscardTriggerNames[i])}},
              value(device.discards[i]), type == Type::counter ? since : std::nullopt);
    }
  });
}

void bursts(const Snapshot& snapshot, Samples& out) {
  add_by_trigger(snapshot, out, Type::counter, [](const DiscardBursts& bursts) { return to_double(bursts.bursts); });
}

void burst_bytes(const Snapshot& snapshot, Samples& out) {
  add_by_trigger(snapshot, out, Type::counter, [](const DiscardBursts& bursts) { return to_double(bursts.bytes); });
}

void burst_seconds(const Snapshot& snapshot, Samples& out) {
  add_by_trigger(snapshot, out, Type::counter,
                 [](const DiscardBursts& bursts) { return to_seconds(bursts.duration_ns); });
}

void burst_active(const Snapshot& snapshot, Samples& out) {
  add_by_trigger(snapshot, out, Type::gauge, [](const DiscardBursts& bursts) { return bursts.active ? 1 : 0; });
}

void array_active(const Snapshot& snapshot, Samples& out) {
  for (const auto& entry : snapshot.array_discards) {
    for (std::size_t i = 0; i < model::kDiscardTriggers; ++i) {
      out.add({{"array", entry.array}, {"trigger", std::string(model::kDiscardTriggerNames[i])}},
              entry.active[i] ? 1 : 0);
    }
  }
}

void filesystem_bytes(const Snapshot& snapshot, Samples& out) {
  for (const auto& entry : snapshot.filesystem_discards) {
    for (std::size_t i = 0; i < model::kDiscardTriggers; ++i) {
      out.add({{"volume", entry.volume},
               {"mountpoint", util::for_label(entry.mountpoint)},
               {"discard", entry.mounted_with_discard ? "true" : "false"},
               {"trigger", std::string(model::kDiscardTriggerNames[i])}},
              to_double(entry.bytes[i]), entry.since);
    }
  }
}

constexpr LabelDescription kTrigger{
    "trigger",
    "who submitted them: a program of this name; fstrim: also other programs that use FITRIM; online: a file system "
    "mounted with discard; other: any other program, or a submitter that was not seen",
    model::kDiscardTriggerNames};
constexpr LabelDescription kTriggerLabels[] = {kDevice, kTrigger};
constexpr LabelDescription kArrayLabels[] = {{"array", "the md or dm device"}, kTrigger};
constexpr LabelDescription kFilesystemLabels[] = {
    {"volume", "the disk or partition that the file system lies on: dm-0 rather than the disk below it"},
    {"mountpoint", "where it is mounted"},
    {"discard", "whether it is mounted with online discard", kTrueOrFalse},
    kTrigger,
};

constexpr FamilyDescription kFamilies[] = {
    {"ssdpulse_discard_bursts_total",
     "Bursts of discards that started. A burst ends once discard.burst_gap has passed without a completed discard.",
     bursts, kTriggerLabels},
    {"ssdpulse_discard_burst_bytes_total",
     "Bytes of completed discards. When several triggers are active at once, each is credited with what it submitted "
     "to the device, once all of it has completed. On members of arrays that pass discards down themselves (dm, "
     "raid1), each trigger is credited with its share of what was submitted to the array.",
     burst_bytes, kTriggerLabels},
    {"ssdpulse_discard_burst_seconds_total",
     "Time from a burst's first submission to its last completion; grows while the burst lasts.", burst_seconds,
     kTriggerLabels},
    {"ssdpulse_discard_burst_active", "1 while a burst lasts, and until discard.burst_gap has confirmed its end.",
     burst_active, kTriggerLabels},
    {"ssdpulse_array_discard_burst_active",
     "1 while a member of this md or dm device has a burst that was submitted to the array.", array_active,
     kArrayLabels, "the host has no md or dm device"},
    {"ssdpulse_filesystem_discard_bytes_total",
     "Bytes of discards submitted to the disk or partition directly below a mounted file system, since it was first "
     "seen mounted there.",
     filesystem_bytes, kFilesystemLabels,
     "no watched file system is mounted; or, before Linux 5.12, all are on partitions and the kernel allows no "
     "function hooks"},
};

}  // namespace

std::span<const FamilyDescription> discard_families() { return kFamilies; }

}  // namespace ssdpulse::exposition
