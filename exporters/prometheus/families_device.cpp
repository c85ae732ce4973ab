// SPDX-License-Identifier: Apache-2.0
// What drives does the host have, and what lives on them? One entry per family in kFamilies.
// Identity is on the info metrics only; join with `* on (device) group_left (model) ssdpulse_device_info`.
#include <string>

#include "exporters/prometheus/families.h"

namespace ssdpulse::exposition {
namespace {

using model::Snapshot;

std::string true_or_false(bool value) { return value ? "true" : "false"; }

void device_info(const Snapshot& snapshot, Samples& out) {
  for (const auto& entry : snapshot.devices) {
    const auto& device = *entry.device;
    out.add_info({{"device", device.name},
                  {"model", device.model},
                  {"serial", device.serial},
                  {"firmware", device.firmware},
                  {"wwid", device.wwid},
                  {"transport", device.transport},
                  {"scheduler", device.scheduler},
                  {"rotational", true_or_false(device.rotational)},
                  {"write_back_cache", true_or_false(device.write_back_cache)},
                  {"discard", true_or_false(device.discard)},
                  {"iostats", true_or_false(device.iostats)}});
  }
}

void device_size(const Snapshot& snapshot, Samples& out) {
  for (const auto& entry : snapshot.devices) {
    out.add({{"device", entry.device->name}}, to_double(entry.device->size_bytes));
  }
}

void device_member_info(const Snapshot& snapshot, Samples& out) {
  for (const auto& member : snapshot.memberships) {
    out.add_info({{"array", member.array}, {"device", member.device}, {"kind", member.kind}, {"name", member.name}});
  }
}

void filesystem_info(const Snapshot& snapshot, Samples& out) {
  for (const auto& filesystem : snapshot.filesystems) {
    out.add_info({{"device", filesystem.device},
                  {"mountpoint", filesystem.mountpoint},
                  {"fstype", filesystem.fstype},
                  {"discard", true_or_false(filesystem.discard)}});
  }
}

constexpr FamilyDescription kFamilies[] = {
    {"ssdpulse_device_info", "A measured drive and its identity; always 1.", "", Type::gauge, Modes::all, device_info},
    {"ssdpulse_device_size_bytes", "Capacity of the drive.", "bytes", Type::gauge, Modes::all, device_size},
    {"ssdpulse_device_member_info", "The drive carries part of this md or dm device, at any depth; always 1.", "",
     Type::gauge, Modes::all, device_member_info},
    {"ssdpulse_filesystem_info",
     "A mounted file system and a drive under it; discard: mounted with online discard; always 1.", "", Type::gauge,
     Modes::all, filesystem_info},
};

}  // namespace

std::span<const FamilyDescription> device_families() { return kFamilies; }

}  // namespace ssdpulse::exposition
