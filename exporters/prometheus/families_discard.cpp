// SPDX-License-Identifier: Apache-2.0
// Which bursts of discards did each device have, who caused them, and on which file system? One entry per family in
// kFamilies. Every trigger of every present device and mounted file system counts from 0.
#include <string>

#include "exporters/prometheus/families.h"

namespace ssdpulse::exposition {
namespace {

using model::DiscardBursts;
using model::Snapshot;

template <typename Select>
void add_each(const Snapshot& snapshot, Samples& out, bool is_counter, Select select) {
  for (const auto& entry : snapshot.devices) {
    const auto since = is_counter && entry.io ? std::optional(entry.io->since) : std::nullopt;
    for (std::size_t i = 0; i < model::kDiscardTriggers; ++i) {
      out.add({{"device", entry.device->name}, {"trigger", std::string(model::kDiscardTriggerNames[i])}},
              select(entry.discards[i]), since);
    }
  }
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
               {"mountpoint", entry.mountpoint},
               {"discard", entry.mounted_with_discard ? "true" : "false"},
               {"trigger", std::string(model::kDiscardTriggerNames[i])}},
              to_double(entry.bytes[i]), entry.since);
    }
  }
}

constexpr FamilyDescription kFamilies[] = {
    {"ssdpulse_discard_bursts_total",
     "Bursts of discards that began, by who submitted them: fstrim, online (a file system mounted with discard), "
     "blkdiscard, mkfs, other. discard.burst_gap without a completed one ends a burst.",
     "", Type::counter, Modes::all,
     [](const Snapshot& s, Samples& out) {
       add_each(s, out, true, [](const DiscardBursts& bursts) { return to_double(bursts.bursts); });
     }},
    {"ssdpulse_discard_burst_bytes_total",
     "Bytes of completed discards. Of several triggers at once each has what it submitted to the device, once all has "
     "completed. On members of arrays that hand discards down by themselves (dm, raid1), each has its share of what "
     "was submitted to the array.",
     "bytes", Type::counter, Modes::all,
     [](const Snapshot& s, Samples& out) {
       add_each(s, out, true, [](const DiscardBursts& bursts) { return to_double(bursts.bytes); });
     }},
    {"ssdpulse_discard_burst_seconds_total",
     "Time from a burst's first submission until its last completion; counted while it runs.", "seconds", Type::counter,
     Modes::all,
     [](const Snapshot& s, Samples& out) {
       add_each(s, out, true, [](const DiscardBursts& bursts) { return to_seconds(bursts.duration_ns); });
     }},
    {"ssdpulse_discard_burst_active", "1 while a burst is under way, and until discard.burst_gap has shown its end.",
     "", Type::gauge, Modes::all,
     [](const Snapshot& s, Samples& out) {
       add_each(s, out, false, [](const DiscardBursts& bursts) { return bursts.active ? 1 : 0; });
     }},
    {"ssdpulse_array_discard_burst_active",
     "1 while a drive of this md or dm device has a burst that was submitted to the array.", "", Type::gauge,
     Modes::all, array_active},
    {"ssdpulse_filesystem_discard_bytes_total",
     "Bytes of discards that were submitted to the disk or partition right under a mounted file system, since it was "
     "first seen mounted there; discard: mounted with online discard.",
     "bytes", Type::counter, Modes::all, filesystem_bytes},
};

}  // namespace

std::span<const FamilyDescription> discard_families() { return kFamilies; }

}  // namespace ssdpulse::exposition
