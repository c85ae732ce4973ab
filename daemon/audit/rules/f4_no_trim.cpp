// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "daemon/audit/rules/rules.h"

namespace ssdpulse::audit {
namespace {

constexpr double kCostly = 1.5;  // lower bound of write amplification

/// What would trim it by the settings; empty: nothing does.
std::string said_to_trim(const Facts& facts, const MountSettings& mount) {
  const bool timer = facts.settings.fstrim.enabled.value_or(false);
  return has_online_discard(mount)
             ? (timer ? "it is mounted with discard, and fstrim.timer is enabled" : "it is mounted with discard")
             : (timer ? "fstrim.timer is enabled" : "");
}

/// Absent: write amplification or bytes are not known of any of its disks.
std::optional<double> wear_per_day(const Facts& facts, const MountSettings& mount) {
  std::optional<double> wear;
  for (const DiskSettings& disk : facts.settings.disks) {
    if (std::find(mount.disks.begin(), mount.disks.end(), disk.device.name) == mount.disks.end()) {
      continue;
    }
    const auto known = write_amplification_at_least(facts, disk);
    const auto host = bytes_per_day(facts, disk.device.name, model::Operation::write);
    wear = known && host ? std::optional(wear.value_or(0) + *host * (*known - 1)) : wear;
  }
  return wear;
}

bool nothing_was_written(const Facts& facts, const MountSettings& mount) {
  return std::all_of(mount.disks.begin(), mount.disks.end(), [&](const std::string& disk) {
    return bytes_of(facts, disk, model::Operation::write).value_or(1) <= 0;
  });
}

Finding weigh_untrimmed(const Facts& facts, const MountSettings& mount, Finding bad) {
  if (const auto place = word_or_why(mount.mountpoint, bad)) {
    bad.change = fmt::format("fstrim -v {}", *place);
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
  const std::string said = said_to_trim(facts, mount);
  if (seen.bytes.value_or(0) > 0) {
    return ok(said.empty() ? "something else trims it, or its disks"
                           : fmt::format("{}, and its disks were sent discards in the {} measured", said,
                                         duration(seen.seconds)));
  }
  if (said.empty() && !facts.settings.fstrim.enabled) {
    return unknown("whether it is trimmed", "whether fstrim.timer is enabled cannot be seen");
  }
  if (said.empty()) {
    if (!mount.unshown.complete) {
      return unknown_for_options("whether it is trimmed");
    }
    Finding bad = info("nothing trims it", "the drive treats deleted data as live, and moves it around");
    bad.persistent = "systemctl enable --now fstrim.timer";
    bad.undo = "systemctl disable --now fstrim.timer";
    return weigh_untrimmed(facts, mount, std::move(bad));
  }
  if (!seen.bytes) {
    return ok(said + "; whether it is trimmed is not measured");
  }
  if (seen.seconds < seconds_until_fstrim(facts) || nothing_was_written(facts, mount)) {
    return ok(fmt::format("{}; nothing was discarded yet in the {} measured", said, duration(seen.seconds)));
  }
  Finding bad = info(fmt::format("{}, yet nothing was discarded in the {} measured", said, duration(seen.seconds)),
                     "it may not be in /etc/fstab, fstrim.service may fail (journalctl -u fstrim.service), or nothing "
                     "was deleted; if it is not trimmed, the drive treats deleted data as live");
  bad.undo = "none is needed: it is what the setting is for";
  bad.evidence["discarded_bytes"] = 0;
  return weigh_untrimmed(facts, mount, std::move(bad));
}

}  // namespace

const Rule kF4{.id = "F4",
               .title = "File systems that nothing trims",
               .limit =
                   "no discard was measured, whatever the settings say, and the lower bound of write amplification is "
                   "at least 1.5, at a cost of 10 GB a day",
               .source = "fstrim(8)",
               .days = 7,  // it may happen once a week
               .by_history = true,
               .of_mount = no_trim};

}  // namespace ssdpulse::audit
