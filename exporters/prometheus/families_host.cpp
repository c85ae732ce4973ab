// SPDX-License-Identifier: Apache-2.0
// What the kernel says about I/O that waits above the drives: pressure, limits, volumes, dirty pages, room.
#include <algorithm>
#include <map>
#include <string>

#include "exporters/prometheus/families.h"

namespace ssdpulse::exposition {
namespace {

using model::Snapshot;

constexpr auto kPressureKinds = std::to_array<std::string_view>({"some", "full"});
constexpr LabelDescription kPressureLabels[] = {
    {"kind", "some: at least one task waited; full: nobody did anything else", kPressureKinds}};
constexpr LabelDescription kTenantLabels[] = {{"tenant", "as of ssdpulse_tenant_bytes_total"}};
constexpr LabelDescription kLimitLabels[] = {{"tenant", "that the limit is set on"},
                                             {"device", "that it is for, as the kernel names it"},
                                             {"operation", "what is limited", kReadAndWrite}};
constexpr LabelDescription kMountLabels[] = {{"mountpoint", "where the file system is mounted"}};
constexpr LabelDescription kVolumeLabels[] = {{"volume", "the dm device"}};
constexpr LabelDescription kResyncLabels[] = {
    {"array", "the md device"}, {"action", "as in md/sync_action: check, resync, recover, reshape, repair"}};
constexpr LabelDescription kCauseLabels[] = {{"cause", "what held it up; see causes.md", model::kHostWaitCauseNames}};

constexpr std::string_view kWithoutPressure = "the kernel has no pressure stall information, or it is off (psi=0)";
constexpr std::string_view kWithoutRoom = "no file system on a measured disk can be asked";

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

void limits(const Snapshot& snapshot, Samples& out, bool bytes) {
  std::map<std::array<std::string, 3>, std::uint64_t> least;
  if (snapshot.host.signals) {
    for (const model::IoLimit& limit : snapshot.host.signals->limits) {
      const bool of_bytes = limit.kind == model::IoLimitKind::rbps || limit.kind == model::IoLimitKind::wbps;
      const bool reads = limit.kind == model::IoLimitKind::rbps || limit.kind == model::IoLimitKind::riops;
      if (of_bytes == bytes) {
        const auto [entry, is_new] =
            least.try_emplace({limit.tenant, limit.device, reads ? "read" : "write"}, limit.per_second);
        entry->second = std::min(entry->second, limit.per_second);
      }
    }
  }
  for (const auto& [labels, value] : least) {
    out.add({{"tenant", labels[0]}, {"device", labels[1]}, {"operation", labels[2]}}, to_double(value));
  }
}

template <typename Select>
void rooms(const Snapshot& snapshot, Samples& out, Select select) {
  if (snapshot.host.signals) {
    for (const model::FilesystemRoom& room : snapshot.host.signals->rooms) {
      if (const auto value = select(room)) {
        out.add({{"mountpoint", util::for_label(room.mountpoint)}}, to_double(*value));
      }
    }
  }
}

void suspended(const Snapshot& snapshot, Samples& out) {
  if (snapshot.host.signals) {
    for (const model::VolumeSignals& volume : snapshot.host.signals->volumes) {
      if (volume.volume.rfind("dm-", 0) == 0) {
        out.add({{"volume", volume.volume}}, volume.suspended ? 1 : 0);
      }
    }
  }
}

void resync(const Snapshot& snapshot, Samples& out) {
  if (snapshot.host.signals) {
    for (const model::VolumeSignals& volume : snapshot.host.signals->volumes) {
      if (volume.resync && volume.resync->progress_ratio) {
        out.add({{"array", volume.volume}, {"action", volume.resync->action}}, *volume.resync->progress_ratio);
      }
    }
  }
}

template <typename Select>
void by_cause(const Snapshot& snapshot, Samples& out, Select select, bool is_counter) {
  if (!snapshot.host.signals) {
    return;
  }
  for (std::size_t i = 0; i < model::kHostWaitCauses; ++i) {
    out.add({{"cause", std::string(model::kHostWaitCauseNames[i])}}, select(snapshot.host, i),
            is_counter ? daemon_start(snapshot) : std::nullopt);
  }
}

using Room = model::FilesystemRoom;
using Number = std::optional<std::uint64_t>;

constexpr FamilyDescription kFamilies[] = {
    {"ssdpulse_host_io_pressure_seconds_total",
     "Time in which tasks of this host waited for I/O, since it booted (/proc/pressure/io).", "seconds", Type::counter,
     Modes::all, kPressureLabels, kWithoutPressure, pressure},
    {"ssdpulse_tenant_io_pressure_seconds_total",
     "Time in which at least one task of the tenant waited for I/O (io.pressure), since the daemon first saw it. Of "
     "several cgroups, in each second that of the one that waited longest.",
     "seconds", Type::counter, Modes::all, kTenantLabels,
     "on cgroup v1, without pressure stall information, and of tenants that have sent no I/O", tenant_pressure},
    {"ssdpulse_tenant_io_limit_bytes_per_second", "The lowest limit that io.max or blkio.throttle sets on this tenant.",
     "", Type::gauge, Modes::all, kLimitLabels, "none is set on a tenant that has sent I/O, or above it",
     [](const Snapshot& s, Samples& out) { limits(s, out, true); }},
    {"ssdpulse_tenant_io_limit_ios_per_second", "The lowest limit that io.max or blkio.throttle sets on this tenant.",
     "", Type::gauge, Modes::all, kLimitLabels, "none is set on a tenant that has sent I/O, or above it",
     [](const Snapshot& s, Samples& out) { limits(s, out, false); }},
    {"ssdpulse_host_dirty_bytes",
     "Pages that are dirty or being written back.",
     "bytes",
     Type::gauge,
     Modes::all,
     {},
     "/proc/vmstat does not have them",
     [](const Snapshot& s, Samples& out) {
       if (s.host.signals && s.host.signals->dirty) {
         out.add({}, to_double(s.host.signals->dirty->bytes));
       }
     }},
    {"ssdpulse_host_dirty_threshold_bytes",
     "Dirty pages that are allowed; from halfway between this and the background threshold on, the kernel holds up "
     "whoever writes.",
     "bytes",
     Type::gauge,
     Modes::all,
     {},
     "/proc/vmstat does not have it",
     [](const Snapshot& s, Samples& out) {
       if (s.host.signals && s.host.signals->dirty) {
         out.add({}, to_double(s.host.signals->dirty->threshold_bytes));
       }
     }},
    {"ssdpulse_filesystem_size_bytes", "Size of the file system, as df shows it.", "bytes", Type::gauge, Modes::all,
     kMountLabels, kWithoutRoom,
     [](const Snapshot& s, Samples& out) { rooms(s, out, [](const Room& room) { return Number(room.size_bytes); }); }},
    {"ssdpulse_filesystem_available_bytes", "What unprivileged programs may still use of it.", "bytes", Type::gauge,
     Modes::all, kMountLabels, kWithoutRoom,
     [](const Snapshot& s, Samples& out) {
       rooms(s, out, [](const Room& room) { return Number(room.available_bytes); });
     }},
    {"ssdpulse_filesystem_filling_bytes_per_second",
     "How fast it fills, over the last six hours, or since the daemon's start if that was an hour ago or more. "
     "Divide ssdpulse_filesystem_available_bytes by it for the time that is left.",
     "", Type::gauge, Modes::all, kMountLabels, "no file system fills steadily",
     [](const Snapshot& s, Samples& out) {
       for (const auto& [mountpoint, rate] : s.host.filling_bytes_per_second) {
         out.add({{"mountpoint", util::for_label(mountpoint)}}, rate);
       }
     }},
    {"ssdpulse_filesystem_inodes", "Files that it can have.", "", Type::gauge, Modes::all, kMountLabels,
     "no file system on a measured disk has a fixed number of inodes",
     [](const Snapshot& s, Samples& out) {
       rooms(s, out, [](const Room& room) { return room.inodes > 0 ? Number(room.inodes) : Number(); });
     }},
    {"ssdpulse_filesystem_available_inodes", "Files that can still be made.", "", Type::gauge, Modes::all, kMountLabels,
     "no file system on a measured disk has a fixed number of inodes",
     [](const Snapshot& s, Samples& out) {
       rooms(s, out, [](const Room& room) { return room.inodes > 0 ? Number(room.available_inodes) : Number(); });
     }},
    {"ssdpulse_volume_suspended", "1 while the volume is suspended: all I/O to it waits.", "", Type::gauge, Modes::all,
     kVolumeLabels, "the host has no dm device", suspended},
    {"ssdpulse_array_resync_progress_ratio", "How far a check, rebuild or reshape has come.", "ratio", Type::gauge,
     Modes::all, kResyncLabels, "none runs", resync},
    {"ssdpulse_host_waits_total", "Times that something above the drives held up I/O.", "", Type::counter, Modes::all,
     kCauseLabels, "before the first reading",
     [](const Snapshot& s, Samples& out) {
       by_cause(
           s, out, [](const model::HostFigures& host, std::size_t i) { return to_double(host.count[i]); }, true);
     }},
    {"ssdpulse_host_wait_seconds_total", "How long they lasted; grows while one goes on.", "seconds", Type::counter,
     Modes::all, kCauseLabels, "before the first reading",
     [](const Snapshot& s, Samples& out) {
       by_cause(
           s, out, [](const model::HostFigures& host, std::size_t i) { return host.seconds[i]; }, true);
     }},
    {"ssdpulse_host_wait_active", "1 while one goes on.", "", Type::gauge, Modes::all, kCauseLabels,
     "before the first reading",
     [](const Snapshot& s, Samples& out) {
       by_cause(
           s, out,
           [](const model::HostFigures& host, std::size_t i) {
             return std::any_of(host.waits.begin(), host.waits.end(),
                                [&](const model::HostWait& wait) { return !wait.over && index(wait.cause) == i; })
                        ? 1.0
                        : 0.0;
           },
           false);
     }},
};

}  // namespace

std::span<const FamilyDescription> host_families() { return kFamilies; }

}  // namespace ssdpulse::exposition
