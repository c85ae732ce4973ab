// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "daemon/audit/rules/rules.h"

namespace ssdpulse::audit {
namespace {

constexpr double kJournalShare = 0.3;  // of the bytes written

Finding journal_mode(const Facts& facts, const MountSettings& mount) {
  if (mount.fstype != "ext4" && mount.fstype != "ext3") {
    return not_applicable("it is not ext4");
  }
  if (mount.unshown.journal == false) {
    return info("it has no journal", "after a crash it must be checked first, and may have lost files: a trade-off");
  }
  if (mount.options.count("data=writeback") > 0) {
    Finding finding = info("data is not ordered before the journal (data=writeback)",
                           "after a crash, files may contain deleted data of others: a trade-off, not a fix");
    if (const auto place = word_or_why(mount.mountpoint, finding)) {
      finding.change = permanently(mount, "data=writeback", *place) + ", then mount it again";
    }
    finding.undo = "add it again";
    finding.risk = "syncs wait for the data of other files";
    return finding;
  }
  if (mount.options.count("data=journal") == 0 && !mount.unshown.complete) {
    return unknown_for_options("whether data is ordered before the journal");
  }
  if (mount.options.count("data=journal") == 0) {
    return ok("data is ordered before the journal");
  }
  Finding bad = info("all data goes through the journal (data=journal)", "each byte is written twice");
  if (const auto place = word_or_why(mount.mountpoint, bad)) {
    bad.change = permanently(mount, "data=journal", *place) + ", then mount it again";
  }
  bad.undo = "add it again";
  bad.risk = "a write that was not synced may be lost in part";
  std::optional<double> journal;
  std::optional<double> all;
  for (const std::string& disk : mount.disks) {
    const MeasuredDevice& device = facts.measured.device(disk);
    add_figure(journal, facts.measured.per_day(device.written_bytes_by(model::WriteClass::journal)));
    add_figure(all, facts.measured.per_day(device.all_written_bytes()));
  }
  return weigh(facts, std::move(bad),
               {{"journal_share", ratio(journal, all), kJournalShare}, {"wear_bytes_per_day", journal, kWearLimit}});
}

}  // namespace

const Rule kF8{.id = "F8",
               .title = "Journal mode of ext4",
               .limit = "the journal is 30 % of the bytes written, and 10 GB a day",
               .source = "Documentation/admin-guide/ext4.rst, data=",
               .of_mount = journal_mode};

}  // namespace ssdpulse::audit
