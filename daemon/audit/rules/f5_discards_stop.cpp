// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "daemon/audit/rules/rules.h"

namespace ssdpulse::audit {
namespace {

Finding discards_stop(const Facts& facts, const DiskSettings& array) {
  const auto most = array.files.number("queue/discard_max_bytes");
  if (!most) {
    return unknown("whether discards pass", "queue/discard_max_bytes is not readable");
  }
  if (!disk_below_takes_discards(facts, array)) {
    return not_applicable("no disk below accepts discards");
  }
  if (*most > 0) {
    return ok("discards pass");
  }
  Finding bad =
      info("discards stop here, although the disks below accept them", "the drives treat deleted data as live");
  const util::OutsideText level = array.files.text("md/level");
  if (array.crypt_flags && array.crypt_flags->count("allow_discards") > 0) {
    bad.why += "; dm-crypt lets them pass, what lies below it does not";
  } else if (kind_of_crypt(array) != CryptKind::none) {
    std::set<std::string> flags = array.crypt_flags.value_or(std::set<std::string>{});
    flags.insert("allow_discards");
    refresh_crypt(bad, array, flags, "discard");
    bad.risk = "anyone who reads the bare disk sees which parts are free";
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
               .limit = "the lower bound of write amplification of a drive below is at least 1.5",
               .source = "drivers/md/raid5.c; cryptsetup(8), --allow-discards",
               .of_array = discards_stop};

}  // namespace ssdpulse::audit
