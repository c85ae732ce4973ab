// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "daemon/audit/rules/rules.h"

namespace ssdpulse::audit {
namespace {

Finding both_trims(const Facts& facts, const MountSettings& mount) {
  const bool online = has_online_discard(mount);
  if (!facts.settings.fstrim.enabled) {
    return unknown("whether it is trimmed twice", "whether fstrim.timer is enabled cannot be seen");
  }
  if (!online || !*facts.settings.fstrim.enabled) {
    return ok(online ? "it is trimmed online alone" : "it is not trimmed online");
  }
  if (!takes_discards(facts, mount)) {
    return not_applicable("no disk below takes discards, or none passes to it: see F5");
  }
  Finding bad = info("it is trimmed twice: mounted with discard, and fstrim.timer is enabled",
                     "the second one does the work again, in bursts");
  const auto bytes = [&](const char* trigger) {
    return facts.measured.per_day("ssdpulse_filesystem_discard_bytes_total",
                                  {{"mountpoint", mount.mountpoint}, {"trigger", trigger}});
  };
  const auto by_fstrim = bytes("fstrim");
  const auto by_mount = bytes("online");
  // The dearer one goes. Where nothing tells, the option does: fstrim picks its hour.
  if (fstrim_is_dearer(facts, mount)) {
    if (!timer_is_needless(facts)) {
      bad.why += "; fstrim costs more here, but other file systems need its timer";
      return bad;
    }
    bad.change = "systemctl disable --now fstrim.timer";
    bad.undo = "systemctl enable --now fstrim.timer";
    bad.risk = "file systems on disks that are not measured are no longer trimmed";
  } else {
    bad.risk = "until the next fstrim the drive takes deleted data for data";
    drop_online_discard(bad, mount);
  }
  return weigh(facts, std::move(bad), {{"fstrim_bytes_per_day", by_fstrim, 1}, {"online_bytes_per_day", by_mount, 1}});
}

}  // namespace

const Rule kF1{.id = "F1",
               .title = "File systems that are trimmed twice",
               .limit = "both have discarded something",
               .source = "util-linux, fstrim.service: it does not leave out mounts with discard",
               .of_mount = both_trims};

}  // namespace ssdpulse::audit
