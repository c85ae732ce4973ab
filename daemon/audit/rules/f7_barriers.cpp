// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "daemon/audit/rules/rules.h"

namespace ssdpulse::audit {
namespace {

Finding barriers(const Facts& facts, const MountSettings& mount) {
  const bool without = mount.options.count("barrier=0") + mount.options.count("nobarrier") +
                           mount.options.count("barrier=none") >  // of reiserfs
                       0;
  if (!without) {
    return mount.unshown.complete ? ok("it is mounted with barriers") : unknown_for_options("whether it has barriers");
  }
  const bool cache =
      std::any_of(facts.settings.disks.begin(), facts.settings.disks.end(), [&](const DiskSettings& disk) {
        return disk.device.write_back_cache &&
               std::find(mount.disks.begin(), mount.disks.end(), disk.device.name) != mount.disks.end();
      });
  if (!cache) {
    return info("it is mounted without barriers", "no disk below has a volatile cache, so they would cost nothing");
  }
  Finding finding = danger("it is mounted without barriers, on a disk with a volatile cache",
                           "a power failure damages the file system and loses synced data");
  if (const auto place = word_or_why(mount.mountpoint, finding)) {
    finding.change = fmt::format("mount -o remount,barrier {}", *place);
    finding.persistent = permanently(mount, mount.options.count("nobarrier") > 0 ? "nobarrier" : "barrier=0", *place);
    finding.undo = fmt::format("mount -o remount,nobarrier {}  # and the former options in /etc/fstab", *place);
  }
  finding.risk = "each sync waits for the drive, as it must";
  return finding;
}

}  // namespace

const Rule kF7{.id = "F7",
               .title = "Mounts without barriers",
               .limit = "danger on every disk with a volatile cache",
               .source = "Documentation/admin-guide/ext4.rst, barrier",
               .of_mount = barriers};

}  // namespace ssdpulse::audit
