// SPDX-License-Identifier: Apache-2.0
#include "daemon/audit/rules/rules.h"

namespace ssdpulse::audit {
namespace {

Finding which_trim(const Facts& facts, const MountSettings& mount) {
  if (!facts.settings.fstrim.enabled) {
    return unknown("how it is trimmed", "whether fstrim.timer is enabled cannot be seen");
  }
  if (!has_online_discard(mount) && !mount.unshown.complete && !*facts.settings.fstrim.enabled) {
    return unknown_for_options("how it is trimmed");
  }
  if (!has_online_discard(mount)) {
    return not_applicable(*facts.settings.fstrim.enabled
                              ? "only fstrim.timer is to trim it: F4 looks at whether it does"
                              : "it is not trimmed: see F4");
  }
  if (*facts.settings.fstrim.enabled) {
    return not_applicable("both are to trim it: see F1");
  }
  if (!takes_discards(facts, mount)) {
    return not_applicable("no disk below accepts discards, or none reaches it: see F5");
  }
  const TrimCost cost = trim_cost(facts, mount.disks);
  Finding bad = info("only online discard is to trim it",
                     "authorities disagree on whether that or fstrim is better: this host's own numbers decide");
  bad.risk = "fstrim makes one long burst: choose its hour, and compare";
  if (drop_online_discard(bad, mount)) {
    bad.persistent += "; systemctl enable --now fstrim.timer";
  }
  if (cost.online.burst_seconds) {
    bad.evidence["online_burst_seconds_per_day"] = *cost.online.burst_seconds;
  }
  add_tail(facts, mount.disks, bad);
  return weigh(facts, std::move(bad), {{"excess_seconds_per_day", cost.excess_seconds, kExcessLimit}});
}

}  // namespace

const Rule kF2{.id = "F2",
               .title = "Online discard against fstrim",
               .limit = "discards cause 60 s of waiting a day while online discard alone trims",
               .source = "fstrim(8) and RHEL advise fstrim, ScyllaDB online discard; decided by measurement",
               .by_history = true,
               .of_mount = which_trim};

}  // namespace ssdpulse::audit
