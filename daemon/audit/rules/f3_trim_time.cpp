// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "daemon/audit/rules/rules.h"

namespace ssdpulse::audit {
namespace {

Finding trim_time(const Facts& facts) {
  const model::TimerSettings& timer = facts.settings.fstrim;
  if (!timer.enabled) {
    return unknown("when fstrim runs", "whether fstrim.timer is enabled cannot be seen");
  }
  if (!*timer.enabled) {
    return not_applicable("fstrim.timer is not enabled");
  }
  const auto& mounts = facts.settings.mounts;
  const auto is_trimmed = [&](const MountSettings& mount) { return takes_discards(facts, mount); };
  if (timer_is_needless(facts) && std::any_of(mounts.begin(), mounts.end(), is_trimmed)) {
    return not_applicable("everything is trimmed online at a lower cost: see F1");
  }
  const std::string when = timer.calendar.empty() ? "weekly" : util::for_json(timer.calendar);
  Finding bad =
      info("fstrim.timer is set to " + when, "it trims everything at once, and right after a boot that missed it");
  bad.change =
      "systemctl edit fstrim.timer  # [Timer] OnCalendar= (empty), then OnCalendar=Sun 04:00, Persistent=false";
  bad.undo = "systemctl revert fstrim.timer";
  bad.risk = "none known";
  std::vector<std::string> trimmed;  // by fstrim, while it was measured
  std::optional<double> seconds;
  for (const DiskSettings& disk : facts.settings.disks) {
    const auto by_fstrim = trim_cost(facts, {disk.device.name}).fstrim.burst_seconds;
    seconds = by_fstrim ? std::optional(seconds.value_or(0) + *by_fstrim) : seconds;
    if (by_fstrim.value_or(0) > 0) {
      trimmed.push_back(disk.device.name);
    }
  }
  const TrimCost cost = trim_cost(facts, trimmed);
  const auto excess = cost.fstrim.excess_seconds ? cost.fstrim.excess_seconds : cost.excess_seconds;
  add_tail(facts, trimmed, bad);
  if (cost.fstrim.longest_burst_seconds) {
    bad.evidence["longest_fstrim_burst_seconds"] = *cost.fstrim.longest_burst_seconds;
  }
  if ((facts.measured.answered || !facts.evidence.empty()) && seconds.value_or(0) == 0) {
    std::vector<std::string> disks;
    for (const DiskSettings& disk : facts.settings.disks) {
      if (disk.device.discard) {
        disks.push_back(disk.device.name);
      }
    }
    const Discarded seen = discarded_on(facts, disks);
    return seen.bytes == 0.0 && seen.seconds >= seconds_until_fstrim(facts)
               ? info(fmt::format("fstrim.timer is set to {}, yet nothing was discarded in the {} measured", when,
                                  duration(seen.seconds)),
                      "fstrim does not run, fails, or has nothing to do: see F4, and journalctl -u fstrim.service")
               : ok("fstrim.timer is set to " + when + "; fstrim did not run during the measurement");
  }
  return weigh(facts, std::move(bad),
               {{"fstrim_seconds_per_day", seconds, 1}, {"excess_seconds_per_day", excess, kExcessLimit}});
}

}  // namespace

const Rule kF3{.id = "F3",
               .title = "Time of fstrim",
               .limit = "discards cause 60 s of waiting a day on disks that fstrim trims",
               .source = "util-linux, fstrim.timer; systemd.timer(5), Persistent=",
               .days = 7,  // it may happen once a week
               .by_history = true,
               .of_host = trim_time};

}  // namespace ssdpulse::audit
