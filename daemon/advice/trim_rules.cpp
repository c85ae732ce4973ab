// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "daemon/advice/rule.h"
#include "daemon/advice/trim_cost.h"
#include "daemon/base/number_text.h"

namespace ssdpulse::advice {
namespace {

using model::DiscardTrigger;

/// Adds what each of the two costs.
void add_costs(const TrimCost& cost, Finding& finding) {
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

Finding both_trims(const Facts& facts, const MountSettings& mount) {
  const bool online = has_online_discard(mount);
  if (!facts.settings.fstrim.enabled) {
    return unknown("whether it is trimmed twice", "whether fstrim.timer is enabled cannot be seen");
  }
  if (!online && !mount.unshown.complete && *facts.settings.fstrim.enabled) {
    return unknown_for_options("whether it is trimmed online, too");
  }
  const bool by_timer = *facts.settings.fstrim.enabled;
  // Without its timer: by hand, or by cron.
  const bool by_hand = discarded_by(facts, mount, DiscardTrigger::fstrim).value_or(0) > 0;
  if (!online || !(by_timer || by_hand)) {
    return ok(online ? "only online discard is set up to trim it" : "it is not trimmed online");
  }
  if (!takes_discards(facts, mount)) {
    return not_applicable("no disk below accepts discards, or none reaches it: see F5");
  }
  if (const Discarded seen = discarded_on(facts, mount.disks); seen.bytes == 0.0 && seen.seconds > 0) {
    return info(
        fmt::format("it is mounted with discard, and fstrim.timer is enabled, yet nothing was discarded in the {} "
                    "measured",
                    util::duration_text(seen.seconds)),
        "see F4: neither may work");
  }
  if (!by_timer) {
    // What fstrim discarded may date from before its timer was disabled, as this rule itself advises.
    Finding past = info("it is mounted with discard, and fstrim trimmed it, too; its timer is not enabled",
                        "nothing is left to do if the timer was disabled since then; otherwise someone runs fstrim by "
                        "hand or by cron, and it does the work again, in bursts");
    add_costs(trim_cost(facts, mount.disks), past);
    add_tail(facts, mount.disks, past);
    return past;
  }
  Finding bad = info("it is trimmed twice: mounted with discard, and fstrim.timer is enabled",
                     "the second one does the work again, in bursts");
  const TrimCost cost = trim_cost(facts, mount.disks);
  const auto bytes = [&](DiscardTrigger trigger, const WayOfTrimming& way) {
    const auto here = facts.measured.per_day(discarded_by(facts, mount, trigger));
    return std::max(here, way.bytes);  // the daemon may have started after the last fstrim
  };
  const auto by_fstrim = bytes(DiscardTrigger::fstrim, cost.fstrim);
  const auto by_mount = bytes(DiscardTrigger::online, cost.online);
  add_costs(cost, bad);
  add_tail(facts, mount.disks, bad);
  const std::vector<Evidence> discarded{{"fstrim_bytes_per_day", by_fstrim, 1}, {"online_bytes_per_day", by_mount, 1}};
  // The more expensive one goes. If neither is known to be, the mount option goes: fstrim runs at a chosen hour.
  const bool fstrim_goes = fstrim_costs_more(facts, mount);
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

Finding which_trim(const Facts& facts, const MountSettings& mount) {
  if (!facts.settings.fstrim.enabled) {
    return unknown("how it is trimmed", "whether fstrim.timer is enabled cannot be seen");
  }
  if (!has_online_discard(mount) && !mount.unshown.complete && !*facts.settings.fstrim.enabled) {
    return unknown_for_options("how it is trimmed");
  }
  if (!has_online_discard(mount)) {
    return not_applicable(*facts.settings.fstrim.enabled
                              ? "only fstrim.timer is set up to trim it: F4 checks whether it does"
                              : "it is not trimmed: see F4");
  }
  if (*facts.settings.fstrim.enabled) {
    return not_applicable("both are set up to trim it: see F1");
  }
  if (!takes_discards(facts, mount)) {
    return not_applicable("no disk below accepts discards, or none reaches it: see F5");
  }
  const TrimCost cost = trim_cost(facts, mount.disks);
  Finding bad = info("only online discard is set up to trim it",
                     "authorities disagree on whether that or fstrim is better: this host's own numbers decide");
  bad.risk = "fstrim makes one long burst: choose its hour, and compare";
  if (drop_online_discard(bad, mount)) {
    bad.persistent = "systemctl enable --now fstrim.timer; " + bad.persistent;
    bad.undo = "systemctl disable --now fstrim.timer" + (bad.undo.empty() ? "" : "; " + bad.undo);
  }
  if (cost.online.burst_seconds) {
    bad.evidence["online_burst_seconds_per_day"] = *cost.online.burst_seconds;
  }
  add_tail(facts, mount.disks, bad);
  return weigh(facts, std::move(bad), {{"excess_seconds_per_day", cost.excess_seconds, kExcessLimit}});
}

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
  bad.undo = "systemctl edit fstrim.timer  # take the added lines out again";
  bad.risk = "a host that is off at that hour skips that trim";
  std::vector<std::string> trimmed;  // by fstrim, while it was measured
  std::optional<double> fstrim_seconds;
  for (const DiskSettings& disk : facts.settings.disks) {
    const auto by_fstrim = trim_cost(facts, {disk.device.name}).fstrim.burst_seconds;
    add_figure(fstrim_seconds, by_fstrim);
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
  if ((facts.measured.answered || !facts.evidence.empty()) && fstrim_seconds.value_or(0) == 0) {
    std::vector<std::string> disks;
    for (const DiskSettings& disk : facts.settings.disks) {
      if (disk.device.discard) {
        disks.push_back(disk.device.name);
      }
    }
    const Discarded seen = discarded_on(facts, disks);
    return seen.bytes == 0.0 && seen.seconds >= seconds_until_fstrim(facts)
               ? info(fmt::format("fstrim.timer is set to {}, yet nothing was discarded in the {} measured", when,
                                  util::duration_text(seen.seconds)),
                      "fstrim does not run, fails, or has nothing to do: see F4, and journalctl -u fstrim.service")
               : ok("fstrim.timer is set to " + when + "; fstrim did not run during the measurement");
  }
  return weigh(facts, std::move(bad),
               {{"fstrim_seconds_per_day", fstrim_seconds, 1}, {"excess_seconds_per_day", excess, kExcessLimit}});
}

constexpr double kCostly = 1.5;  // lower bound of write amplification

/// What would trim it by the settings; empty: nothing does.
std::string configured_to_trim(const Facts& facts, const MountSettings& mount) {
  const bool timer = facts.settings.fstrim.enabled.value_or(false);
  return has_online_discard(mount)
             ? (timer ? "it is mounted with discard, and fstrim.timer is enabled" : "it is mounted with discard")
             : (timer ? "fstrim.timer is enabled" : "");
}

/// Absent: write amplification or bytes are not known of any of its disks.
std::optional<double> wear_per_day(const Facts& facts, const MountSettings& mount) {
  std::optional<double> wear;
  for (const DiskSettings* disk : disks_named(facts, mount.disks)) {
    const auto amplification = write_amplification_at_least(facts, *disk);
    const auto host = bytes_per_day(facts, disk->device.name, Operation::write);
    wear = amplification && host ? std::optional(wear.value_or(0) + *host * (*amplification - 1)) : wear;
  }
  return wear;
}

bool nothing_was_written(const Facts& facts, const MountSettings& mount) {
  return std::all_of(mount.disks.begin(), mount.disks.end(),
                     [&](const std::string& disk) { return bytes_of(facts, disk, Operation::write).value_or(1) <= 0; });
}

Finding weigh_untrimmed(const Facts& facts, const MountSettings& mount, Finding bad) {
  if (const auto mountpoint = word_or_why(mount.mountpoint, bad)) {
    bad.change = fmt::format("fstrim -v {}", *mountpoint);
  }
  bad.risk = "the first run takes long: do it off hours; deleted data cannot be recovered afterwards";
  return weigh(facts, std::move(bad),
               {{"write_amplification_lower_ratio", write_amplification_at_least(facts, mount.disks), kCostly},
                {"wear_bytes_per_day", wear_per_day(facts, mount), kWearLimit}});
}

Finding no_trim(const Facts& facts, const MountSettings& mount) {
  if (mount.options.count("ro") > 0 && mount.options.count("rw") == 0) {
    return not_applicable("nothing is deleted on it: it is mounted read-only");
  }
  if (!takes_discards(facts, mount)) {
    return not_applicable("no disk below accepts discards, or none reaches it: see F5");
  }
  const Discarded seen = discarded_on(facts, mount.disks);
  const std::string configured = configured_to_trim(facts, mount);
  if (seen.bytes.value_or(0) > 0) {
    return ok(configured.empty() ? "something else trims it, or its disks"
                                 : fmt::format("{}, and its disks were sent discards in the {} measured", configured,
                                               util::duration_text(seen.seconds)));
  }
  if (configured.empty() && !facts.settings.fstrim.enabled) {
    return unknown("whether it is trimmed", "whether fstrim.timer is enabled cannot be seen");
  }
  if (configured.empty()) {
    if (!mount.unshown.complete) {
      return unknown_for_options("whether it is trimmed");
    }
    Finding bad = info("nothing trims it", "the drive treats deleted data as live, and moves it around");
    bad.persistent = "systemctl enable --now fstrim.timer";
    bad.undo = "systemctl disable --now fstrim.timer";
    return weigh_untrimmed(facts, mount, std::move(bad));
  }
  if (!seen.bytes) {
    return ok(configured + "; whether it is trimmed is not measured");
  }
  if (seen.seconds < seconds_until_fstrim(facts) || nothing_was_written(facts, mount)) {
    return ok(
        fmt::format("{}; nothing was discarded yet in the {} measured", configured, util::duration_text(seen.seconds)));
  }
  Finding bad = info(
      fmt::format("{}, yet nothing was discarded in the {} measured", configured, util::duration_text(seen.seconds)),
      "it may not be in /etc/fstab, fstrim.service may fail (journalctl -u fstrim.service), or nothing "
      "was deleted; if it is not trimmed, the drive treats deleted data as live");
  bad.undo = "none: a trim cannot be undone";
  bad.evidence["discarded_bytes"] = 0;
  return weigh_untrimmed(facts, mount, std::move(bad));
}

constexpr Rule kTrimRules[] = {
    {.id = "F1",
     .title = "File systems that are trimmed twice",
     .limit = "both have discarded something",
     .source = "util-linux, fstrim.service: it does not leave out mounts with discard",
     .days = 7,  // it may happen once a week
     .by_history = true,
     .of_mount = both_trims},
    {.id = "F2",
     .title = "Online discard against fstrim",
     .limit = "discards cause 60 s of waiting a day while online discard alone trims",
     .source = "fstrim(8) and RHEL advise fstrim, ScyllaDB online discard; decided by measurement",
     .by_history = true,
     .of_mount = which_trim},
    {.id = "F3",
     .title = "Time of fstrim",
     .limit = "discards cause 60 s of waiting a day on disks that fstrim trims",
     .source = "util-linux, fstrim.timer; systemd.timer(5), Persistent=",
     .days = 7,  // it may happen once a week
     .by_history = true,
     .of_host = trim_time},
    {.id = "F4",
     .title = "File systems that nothing trims",
     .limit = "no discard was measured, whatever the settings say, and the lower bound of write amplification is "
              "at least 1.5, at a cost of 10 GB a day",
     .source = "fstrim(8)",
     .days = 7,  // it may happen once a week
     .by_history = true,
     .of_mount = no_trim},
};

}  // namespace

std::span<const Rule> trim_rules() { return kTrimRules; }

}  // namespace ssdpulse::advice
