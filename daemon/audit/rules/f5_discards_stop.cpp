// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "daemon/audit/rules/rules.h"

namespace ssdpulse::audit {
namespace {

Finding discards_stop(const Facts& facts, const DiskSettings& array) {
  const auto most = array.files.number("queue/discard_max_bytes");
  if (!most) {
    return unknown("whether discards pass", "queue/discard_max_bytes is not readable");
  }
  const bool below =
      std::any_of(facts.settings.disks.begin(), facts.settings.disks.end(), [&](const DiskSettings& disk) {
        return disk.device.discard &&
               std::find(array.disks.begin(), array.disks.end(), disk.device.name) != array.disks.end();
      });
  if (!below) {
    return not_applicable("no disk below takes discards");
  }
  if (*most > 0) {
    return ok("discards pass");
  }
  Finding bad = info("discards stop here, although the disks below take them", "the drives take deleted data for data");
  const std::string level = array.files.text("md/level");
  const std::string uuid = array.files.text("dm/uuid");
  const auto is = [&](const char* kind) { return uuid.rfind(std::string("CRYPT-") + kind + "-", 0) == 0; };
  if (is("LUKS2") || is("LUKS1") || is("PLAIN")) {  // not what is read-only, such as dm-verity
    if (const auto name = word_or_why(array.files.text("dm/name"), bad)) {
      bad.change = fmt::format("cryptsetup refresh --allow-discards {}", *name);
      if (is("LUKS2")) {
        bad.persistent = fmt::format("cryptsetup refresh --allow-discards --persistent {}", *name);
        bad.undo = fmt::format(
            "cryptsetup refresh {}  # --persistent, and all flags that shall stay, if it was made for good", *name);
      } else {  // only LUKS2 keeps flags in its header
        bad.persistent = fmt::format("add discard to the options of {} in /etc/crypttab", *name);
        bad.undo = fmt::format("cryptsetup refresh {}  # and the former options in /etc/crypttab", *name);
      }
    }
    bad.risk = "who reads the bare disk sees which parts are free";
  } else if (level == "raid4" || level == "raid5" || level == "raid6") {
    bad.change = "raid456.devices_handle_discard_safely=1 on the kernel's command line, if all drives return zeroes";
    bad.undo = "remove it again";
    bad.risk = "parity is wrong where a drive does not return zeroes, and trimming is slow";
  }
  const auto lower = write_amplification_at_least(facts, array.disks);
  if (bad.change.empty()) {
    return bad;
  }
  return weigh(facts, std::move(bad), {{"write_amplification_lower_ratio", lower, 1.5}});
}

}  // namespace

const Rule kF5{.id = "F5",
               .title = "Arrays and volumes that keep discards from the drives",
               .limit = "write amplification of a drive below is at least 1.5 for sure",
               .source = "drivers/md/raid5.c; cryptsetup(8), --allow-discards",
               .of_array = discards_stop};

}  // namespace ssdpulse::audit
