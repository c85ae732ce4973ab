// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "daemon/audit/rules/rules.h"

namespace ssdpulse::audit {
namespace {

using model::DiscardTrigger;

/// Adds what each of the two costs.
void tell_costs(const TrimCost& cost, Finding& finding) {
  for (const auto& [name, value] : {std::pair("fstrim_excess_seconds_per_day", cost.fstrim.excess_seconds),
                                    std::pair("online_excess_seconds_per_day", cost.online.excess_seconds),
                                    std::pair("longest_fstrim_burst_seconds", cost.fstrim.longest_burst_seconds)}) {
    if (value) {
      finding.evidence[name] = *value;
    }
  }
}

std::optional<double> discarded_by(const Facts& facts, const MountSettings& mount, DiscardTrigger trigger) {
  return facts.measured.mount(mount.mountpoint).discarded_bytes[index(trigger)];
}

/// Without its timer: by hand, or by cron.
bool was_trimmed_by_fstrim(const Facts& facts, const MountSettings& mount) {
  return discarded_by(facts, mount, DiscardTrigger::fstrim).value_or(0) > 0;
}

Finding both_trims(const Facts& facts, const MountSettings& mount) {
  const bool online = has_online_discard(mount);
  if (!facts.settings.fstrim.enabled) {
    return unknown("whether it is trimmed twice", "whether fstrim.timer is enabled cannot be seen");
  }
  if (!online && !mount.unshown.complete && *facts.settings.fstrim.enabled) {
    return unknown_for_options("whether it is trimmed online, too");
  }
  const bool by_timer = *facts.settings.fstrim.enabled;
  if (!online || !(by_timer || was_trimmed_by_fstrim(facts, mount))) {
    return ok(online ? "only online discard is to trim it" : "it is not trimmed online");
  }
  if (!takes_discards(facts, mount)) {
    return not_applicable("no disk below accepts discards, or none reaches it: see F5");
  }
  if (const Discarded seen = discarded_on(facts, mount.disks); seen.bytes == 0.0 && seen.seconds > 0) {
    return info(
        fmt::format("it is mounted with discard, and fstrim.timer is enabled, yet nothing was discarded in the {} "
                    "measured",
                    duration(seen.seconds)),
        "see F4: neither may work");
  }
  Finding bad = info(fmt::format("it is trimmed twice: mounted with discard, and {}",
                                 by_timer ? "fstrim.timer is enabled" : "fstrim is run without its timer"),
                     "the second one does the work again, in bursts");
  const TrimCost cost = trim_cost(facts, mount.disks);
  const auto bytes = [&](DiscardTrigger trigger, const WayOfTrimming& way) {
    const auto here = facts.measured.per_day(discarded_by(facts, mount, trigger));
    return std::max(here, way.bytes);  // the daemon may have started after the last fstrim
  };
  const auto by_fstrim = bytes(DiscardTrigger::fstrim, cost.fstrim);
  const auto by_mount = bytes(DiscardTrigger::online, cost.online);
  tell_costs(cost, bad);
  add_tail(facts, mount.disks, bad);
  const std::vector<Evidence> discarded{{"fstrim_bytes_per_day", by_fstrim, 1}, {"online_bytes_per_day", by_mount, 1}};
  if (!by_timer) {
    bad.change = "run fstrim on it no more; or drop the mount option discard, and enable fstrim.timer";
    bad.undo = "run fstrim on it again";
    bad.risk = "whoever runs fstrim may do so for other file systems, too";
    return weigh(facts, std::move(bad), discarded);
  }
  // The more expensive one goes. If neither is known to be, the mount option goes: fstrim runs at a chosen hour.
  const bool fstrim_goes = fstrim_is_dearer(facts, mount);
  bad.excess_seconds_per_day = fstrim_goes ? cost.fstrim.excess_seconds : cost.online.excess_seconds;
  if (fstrim_goes) {
    if (!timer_is_needless(facts)) {
      bad.why += "; fstrim costs more here, but other file systems need its timer";
      return bad;
    }
    bad.change = "systemctl disable --now fstrim.timer";
    bad.undo = "systemctl enable --now fstrim.timer";
    bad.risk = "file systems on disks that are not measured are no longer trimmed";
  } else {
    bad.risk = "until the next fstrim the drive treats deleted data as live";
    drop_online_discard(bad, mount);
  }
  return weigh(facts, std::move(bad), discarded);
}

}  // namespace

const Rule kF1{.id = "F1",
               .title = "File systems that are trimmed twice",
               .limit = "both have discarded something",
               .source = "util-linux, fstrim.service: it does not leave out mounts with discard",
               .days = 7,  // it may happen once a week
               .by_history = true,
               .of_mount = both_trims};

}  // namespace ssdpulse::audit
