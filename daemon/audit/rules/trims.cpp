// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "daemon/audit/rules/rules.h"

namespace ssdpulse::audit {
namespace {

/// Of others, such as vfat, the kernel refuses a remount with nodiscard: they have no such option.
bool knows_nodiscard(const std::string& fstype) {
  constexpr std::array<std::string_view, 8> kKnow{"ext3", "ext4", "btrfs", "f2fs", "gfs2", "jfs", "nilfs2", "xfs"};
  return std::find(kKnow.begin(), kKnow.end(), fstype) != kKnow.end();
}

/// Whether an array or volume that has this name, or this partition, keeps discards from the disks below.
bool stops_discards(const Facts& facts, const std::string& volume) {
  return std::any_of(facts.settings.arrays.begin(), facts.settings.arrays.end(), [&](const DiskSettings& array) {
    const bool is = array.device.name == volume ||
                    std::any_of(array.partitions.begin(), array.partitions.end(),
                                [&](const model::PartitionSettings& partition) { return partition.name == volume; });
    return is && array.files.number("queue/discard_max_bytes") == std::uint64_t{0};
  });
}

}  // namespace

bool has_online_discard(const MountSettings& mount) {
  return std::any_of(mount.options.begin(), mount.options.end(),
                     [](const std::string& option) { return option == "discard" || option.rfind("discard=", 0) == 0; });
}

bool drop_online_discard(Finding& finding, const MountSettings& mount) {
  const auto place = word_or_why(mount.mountpoint, finding);
  if (!place) {
    return false;
  }
  if (!knows_nodiscard(mount.fstype)) {
    finding.persistent = fmt::format("remove discard from the options of {} in /etc/fstab", *place);
    finding.change = finding.persistent + ", unmount it and mount it again";
    finding.undo = "add discard to its options again, unmount it and mount it again";
    return true;
  }
  // XFS takes the option at a remount, and goes on as before.
  const bool again = mount.fstype == "xfs";
  const std::string how = again ? fmt::format("umount {} && mount -o ", *place) : "mount -o remount,";
  finding.change = fmt::format("{}nodiscard {}", how, *place);
  finding.persistent = fmt::format("remove discard from the options of {} in /etc/fstab", *place);
  finding.undo = fmt::format("{}discard {}  # and add discard to its options in /etc/fstab again", how, *place);
  finding.risk +=
      again ? "; it is unmounted for a moment, which the kernel refuses while anything uses it, and must be in "
              "/etc/fstab"
            : "";
  if (again && mount.mountpoint == "/") {
    finding.change.clear();  // nobody can unmount it: only the lasting change, and a restart of the host
    finding.undo.clear();
    finding.persistent += " and from rootflags= on the kernel command line, then reboot";
  }
  return true;
}

TrimCost trim_cost(const Facts& facts, const MountSettings& mount) {
  TrimCost cost;
  const auto add = [](std::optional<double>& total, std::optional<double> one) {
    total = one ? std::optional(total.value_or(0) + *one) : total;
  };
  for (const std::string& disk : mount.disks) {
    const auto seconds = [&](const char* trigger) {
      return facts.measured.per_day("ssdpulse_discard_burst_seconds_total", {{"device", disk}, {"trigger", trigger}});
    };
    add(cost.online_seconds, seconds("online"));
    add(cost.fstrim_seconds, seconds("fstrim"));
    add(cost.excess_seconds, excess_per_day(facts, disk, {"discard"}));
  }
  return cost;
}

bool fstrim_is_dearer(const Facts& facts, const MountSettings& mount) {
  const TrimCost cost = trim_cost(facts, mount);
  return cost.fstrim_seconds && *cost.fstrim_seconds > cost.online_seconds.value_or(0);
}

bool takes_discards(const Facts& facts, const MountSettings& mount) {
  const bool stop =
      !mount.volumes.empty() && std::all_of(mount.volumes.begin(), mount.volumes.end(),
                                            [&](const std::string& volume) { return stops_discards(facts, volume); });
  return !stop && std::any_of(facts.settings.disks.begin(), facts.settings.disks.end(), [&](const DiskSettings& disk) {
    return disk.device.discard &&
           std::find(mount.disks.begin(), mount.disks.end(), disk.device.name) != mount.disks.end();
  });
}

bool timer_is_needless(const Facts& facts) {
  return std::all_of(facts.settings.mounts.begin(), facts.settings.mounts.end(), [&](const MountSettings& mount) {
    return !takes_discards(facts, mount) || (has_online_discard(mount) && fstrim_is_dearer(facts, mount));
  });
}

}  // namespace ssdpulse::audit
