// SPDX-License-Identifier: Apache-2.0
// What the rules for dm-crypt volumes share.
#include <fmt/format.h>

#include <algorithm>

#include "daemon/audit/rules/rules.h"

namespace ssdpulse::audit {
namespace {

std::string command(const std::set<std::string>& flags, bool for_good, const std::string& name) {
  std::string text = "cryptsetup refresh ";
  for (const std::string& flag : flags) {
    text += flag == "allow_discards" ? "--allow-discards " : "--perf-" + flag + " ";
  }
  return text + (for_good ? "--persistent " : "") + name;
}

}  // namespace

CryptKind kind_of_crypt(const DiskSettings& array) {
  const util::OutsideText uuid = array.files.text("dm/uuid");
  if (uuid.starts_with("CRYPT-LUKS2-")) {
    return CryptKind::luks2;
  }
  return uuid.starts_with("CRYPT-LUKS1-") ? CryptKind::luks1 : CryptKind::none;
}

bool disk_below_takes_discards(const Facts& facts, const DiskSettings& array) {
  return std::any_of(facts.settings.disks.begin(), facts.settings.disks.end(), [&](const DiskSettings& disk) {
    return disk.device.discard &&
           std::find(array.disks.begin(), array.disks.end(), disk.device.name) != array.disks.end();
  });
}

void refresh_crypt(Finding& finding, const DiskSettings& array, const std::set<std::string>& flags,
                   const std::string& option) {
  if (!array.crypt_flags) {
    finding.why += "; its table, which has the flags to keep, was not read";
    finding.change = "run ssdpulse audit as root: the command must name all flags to keep";
    return;
  }
  const auto name = word_or_why(array.files.text("dm/name"), finding);
  if (!name) {
    return;
  }
  finding.change = command(flags, false, *name);
  const std::string before = command(array.crypt_flags.value(), false, *name);
  if (kind_of_crypt(array) == CryptKind::luks2) {
    finding.persistent = command(flags, true, *name);
    finding.undo = before + "  # --persistent if it was made for good";
  } else {  // only LUKS2 keeps flags in its header
    finding.persistent = fmt::format("add {} to the options of {} in /etc/crypttab", option, *name);
    finding.undo = fmt::format("{}  # and the former options in /etc/crypttab", before);
  }
}

}  // namespace ssdpulse::audit
