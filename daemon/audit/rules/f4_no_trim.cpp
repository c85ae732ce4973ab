// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "daemon/audit/rules/rules.h"

namespace ssdpulse::audit {
namespace {

constexpr double kCostly = 1.5;  // lower bound of write amplification

Finding no_trim(const Facts& facts, const MountSettings& mount) {
  if (has_online_discard(mount) || facts.settings.fstrim.enabled.value_or(false)) {
    return ok("it is trimmed");
  }
  if (mount.options.count("ro") > 0 && mount.options.count("rw") == 0) {
    return not_applicable("nothing is deleted on it: it is mounted read-only");
  }
  std::optional<double> discarded;
  std::optional<double> wear;
  for (const std::string& name : mount.disks) {
    const auto bytes = bytes_of(facts, name, model::Operation::discard);
    discarded = bytes ? std::optional(discarded.value_or(0) + *bytes) : discarded;
    for (const DiskSettings& disk : facts.settings.disks) {
      if (disk.device.name != name) {
        continue;
      }
      const auto known = write_amplification_at_least(facts, disk);
      const auto host = bytes_per_day(facts, name, model::Operation::write);
      if (known) {
        wear = host ? std::optional(wear.value_or(0) + *host * (*known - 1)) : wear;
      }
    }
  }
  if (!takes_discards(facts, mount)) {
    return not_applicable("no disk below accepts discards, or none reaches it: see F5");
  }
  if (discarded.value_or(0) > 0) {
    return ok("something else trims it, or its disks");
  }
  if (!facts.settings.fstrim.enabled) {
    return unknown("whether it is trimmed", "whether fstrim.timer is enabled cannot be seen");
  }
  if (!mount.unshown.complete) {
    return unknown_for_options("whether it is trimmed");
  }
  Finding bad = info("nothing trims it", "the drive treats deleted data as live, and moves it around");
  if (const auto place = word_or_why(mount.mountpoint, bad)) {
    bad.change = fmt::format("fstrim -v {}", *place);
  }
  bad.persistent = "systemctl enable --now fstrim.timer";
  bad.undo = "systemctl disable --now fstrim.timer";
  bad.risk = "the first run takes long: do it off hours; deleted data cannot be recovered afterwards";
  return weigh(facts, std::move(bad),
               {{"write_amplification_lower_ratio", write_amplification_at_least(facts, mount.disks), kCostly},
                {"wear_bytes_per_day", wear, kWearLimit}});
}

}  // namespace

const Rule kF4{
    .id = "F4",
    .title = "File systems that nothing trims",
    .limit =
        "no discard was seen, and the lower bound of write amplification is at least 1.5, at a cost of 10 GB a day",
    .source = "fstrim(8)",
    .days = 7,  // it may happen once a week
    .by_history = true,
    .of_mount = no_trim};

}  // namespace ssdpulse::audit
