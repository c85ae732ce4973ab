// SPDX-License-Identifier: Apache-2.0
// What the kernel says about I/O that waits above the drives: pressure, limits, volumes, dirty pages, room.
#include <algorithm>
#include <map>
#include <string>

#include "exporters/prometheus/families.h"

namespace ssdpulse::exposition {
namespace {

using model::FilesystemRoom;
using model::HostFigures;
using model::IoLimitKind;
using model::Snapshot;

void pressure(const Snapshot& snapshot, Samples& out) {
  if (snapshot.host.signals && snapshot.host.signals->pressure) {
    out.add({{"kind", "some"}}, snapshot.host.signals->pressure->some_seconds);
    out.add({{"kind", "full"}}, snapshot.host.signals->pressure->full_seconds);
  }
}

void tenant_pressure(const Snapshot& snapshot, Samples& out) {
  for (const auto& [tenant, seconds] : snapshot.host.tenant_pressure_seconds) {
    out.add({{"tenant", tenant}}, seconds);
  }
}

template <IoLimitKind reads, IoLimitKind writes>
void limits(const Snapshot& snapshot, Samples& out) {
  std::map<std::array<std::string, 3>, std::uint64_t> lowest;
  if (snapshot.host.signals) {
    for (const model::IoLimit& limit : snapshot.host.signals->limits) {
      if (limit.kind == reads || limit.kind == writes) {
        const auto [entry, is_new] =
            lowest.try_emplace({limit.tenant, limit.device, limit.kind == reads ? "read" : "write"}, limit.per_second);
        entry->second = std::min(entry->second, limit.per_second);
      }
    }
  }
  for (const auto& [labels, value] : lowest) {
    out.add({{"tenant", labels[0]}, {"device", labels[1]}, {"operation", labels[2]}}, to_double(value));
  }
}

template <std::uint64_t model::DirtyPages::*Bytes>
void dirty(const Snapshot& snapshot, Samples& out) {
  if (snapshot.host.signals && snapshot.host.signals->dirty) {
    out.add({}, to_double((*snapshot.host.signals->dirty).*Bytes));
  }
}

template <std::uint64_t FilesystemRoom::*Value>
void room(const Snapshot& snapshot, Samples& out) {
  if (snapshot.host.signals) {
    for (const FilesystemRoom& filesystem : snapshot.host.signals->rooms) {
      constexpr bool kOfInodes = Value == &FilesystemRoom::inodes || Value == &FilesystemRoom::available_inodes;
      if (!kOfInodes || filesystem.inodes > 0) {  // 0: their number is not fixed
        out.add({{"mountpoint", util::for_label(filesystem.mountpoint)}}, to_double(filesystem.*Value));
      }
    }
  }
}

void filling(const Snapshot& snapshot, Samples& out) {
  for (const auto& [mountpoint, rate] : snapshot.host.filling_bytes_per_second) {
    out.add({{"mountpoint", util::for_label(mountpoint)}}, rate);
  }
}

void suspended(const Snapshot& snapshot, Samples& out) {
  if (snapshot.host.signals) {
    for (const model::VolumeSignals& volume : snapshot.host.signals->volumes) {
      if (volume.volume.starts_with("dm-")) {
        out.add({{"volume", volume.volume}}, volume.suspended ? 1 : 0);
      }
    }
  }
}

void degraded_members(const Snapshot& snapshot, Samples& out) {
  if (snapshot.host.signals) {
    for (const model::VolumeSignals& volume : snapshot.host.signals->volumes) {
      if (volume.missing_members) {
        out.add({{"volume", volume.volume}}, to_double(*volume.missing_members));
      }
    }
  }
}

void resync(const Snapshot& snapshot, Samples& out) {
  if (snapshot.host.signals) {
    for (const model::VolumeSignals& volume : snapshot.host.signals->volumes) {
      if (volume.resync) {
        out.add({{"array", volume.volume}, {"action", volume.resync->action}}, volume.resync->progress_ratio);
      }
    }
  }
}

template <typename Value>
void add_by_cause(const Snapshot& snapshot, Samples& out, Type type, Value value) {
  if (snapshot.host.signals) {
    for (std::size_t i = 0; i < model::kHostWaitCauses; ++i) {
      out.add({{"cause", std::string(model::kHostWaitCauseNames[i])}}, value(snapshot.host, i),
              type == Type::counter ? daemon_start(snapshot) : std::nullopt);
    }
  }
}

void waits(const Snapshot& snapshot, Samples& out) {
  add_by_cause(snapshot, out, Type::counter,
               [](const HostFigures& host, std::size_t cause) { return to_double(host.count[cause]); });
}

void wait_seconds(const Snapshot& snapshot, Samples& out) {
  add_by_cause(snapshot, out, Type::counter,
               [](const HostFigures& host, std::size_t cause) { return host.seconds[cause]; });
}

void wait_active(const Snapshot& snapshot, Samples& out) {
  add_by_cause(snapshot, out, Type::gauge, [](const HostFigures& host, std::size_t cause) {
    return std::any_of(host.waits.begin(), host.waits.end(),
                       [&](const model::HostWait& wait) { return !wait.over && index(wait.cause) == cause; })
               ? 1
               : 0;
  });
}

constexpr auto kPressureKinds = std::to_array<std::string_view>({"some", "full"});
constexpr LabelDescription kPressureLabels[] = {
    {"kind", "some: at least one task waited; full: nobody did anything else", kPressureKinds}};
constexpr LabelDescription kTenantLabels[] = {{"tenant", "as of ssdpulse_tenant_bytes_total"}};
constexpr LabelDescription kLimitLabels[] = {{"tenant", "that the limit is set on"},
                                             {"device", "that it is for, as the kernel names it"},
                                             {"operation", "what is limited", kReadAndWrite}};
constexpr LabelDescription kMountLabels[] = {{"mountpoint", "where the file system is mounted"}};
constexpr LabelDescription kVolumeLabels[] = {{"volume", "the dm device"}};
constexpr LabelDescription kArrayLabels[] = {{"volume", "the md device"}};
constexpr LabelDescription kResyncLabels[] = {
    {"array", "the md device"}, {"action", "as in md/sync_action: check, resync, recover, reshape, repair"}};
constexpr LabelDescription kCauseLabels[] = {{"cause", "what held it up; see causes.md", model::kHostWaitCauseNames}};

constexpr std::string_view kWithoutPressure = "the kernel has no pressure stall information, or it is off (psi=0)";
constexpr std::string_view kWithoutRoom = "no file system on a measured disk can be asked";
constexpr std::string_view kNoLimit = "none is set on a tenant that has sent I/O, or above it";
constexpr std::string_view kNoInodes = "no file system on a measured disk has a fixed number of inodes";
constexpr std::string_view kNoHostReading = "before the first reading";

constexpr FamilyDescription kFamilies[] = {
    {"ssdpulse_host_io_pressure_seconds_total",
     "Time in which tasks of this host waited for I/O, since it booted (/proc/pressure/io).", pressure, kPressureLabels,
     kWithoutPressure},
    {"ssdpulse_tenant_io_pressure_seconds_total",
     "Time in which at least one task of the tenant waited for I/O (io.pressure), since the daemon first saw it. Of "
     "several cgroups, in each second that of the one that waited longest.",
     tenant_pressure, kTenantLabels,
     "on cgroup v1, without pressure stall information, and of tenants that have sent no I/O"},
    {"ssdpulse_tenant_io_limit_bytes_per_second", "The lowest limit that io.max or blkio.throttle sets on this tenant.",
     limits<IoLimitKind::rbps, IoLimitKind::wbps>, kLimitLabels, kNoLimit},
    {"ssdpulse_tenant_io_limit_ios_per_second", "The lowest limit that io.max or blkio.throttle sets on this tenant.",
     limits<IoLimitKind::riops, IoLimitKind::wiops>, kLimitLabels, kNoLimit},
    {"ssdpulse_host_dirty_bytes", "Pages that are dirty or being written back.", dirty<&model::DirtyPages::bytes>,
     kNoLabels, "/proc/vmstat does not have them"},
    {"ssdpulse_host_dirty_threshold_bytes",
     "Dirty pages that are allowed; from halfway between this and the background threshold on, the kernel holds up "
     "whoever writes.",
     dirty<&model::DirtyPages::threshold_bytes>, kNoLabels, "/proc/vmstat does not have it"},
    {"ssdpulse_filesystem_size_bytes", "Size of the file system, as df shows it.", room<&FilesystemRoom::size_bytes>,
     kMountLabels, kWithoutRoom},
    {"ssdpulse_filesystem_available_bytes", "What unprivileged programs may still use of it.",
     room<&FilesystemRoom::available_bytes>, kMountLabels, kWithoutRoom},
    {"ssdpulse_filesystem_filling_bytes_per_second",
     "How fast it fills, over the last six hours, or since the daemon's start if that was an hour ago or more. Divide "
     "ssdpulse_filesystem_available_bytes by it for the time that is left.",
     filling, kMountLabels, "no file system fills steadily"},
    {"ssdpulse_filesystem_inodes", "Files that it can have.", room<&FilesystemRoom::inodes>, kMountLabels, kNoInodes},
    {"ssdpulse_filesystem_available_inodes", "Files that can still be made.", room<&FilesystemRoom::available_inodes>,
     kMountLabels, kNoInodes},
    {"ssdpulse_volume_suspended", "1 while the volume is suspended: all I/O to it waits.", suspended, kVolumeLabels,
     "the host has no dm device"},
    {"ssdpulse_volume_degraded_members", "Members that an md array lacks: missing, failed, or still being rebuilt.",
     degraded_members, kArrayLabels, "the host has no md array with redundancy"},
    {"ssdpulse_array_resync_progress_ratio", "How far a check, rebuild or reshape has come.", resync, kResyncLabels,
     "none runs"},
    {"ssdpulse_host_waits_total", "Times that something above the drives held up I/O.", waits, kCauseLabels,
     kNoHostReading},
    {"ssdpulse_host_wait_seconds_total", "How long they lasted; grows while one goes on.", wait_seconds, kCauseLabels,
     kNoHostReading},
    {"ssdpulse_host_wait_active", "1 while one goes on.", wait_active, kCauseLabels, kNoHostReading},
};

}  // namespace

std::span<const FamilyDescription> host_families() { return kFamilies; }

}  // namespace ssdpulse::exposition
