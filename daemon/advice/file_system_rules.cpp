// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "daemon/advice/rule.h"
#include "daemon/base/number_text.h"

namespace ssdpulse::advice {
namespace {

Finding barriers(const Facts& facts, const MountSettings& mount) {
  const bool without = mount.options.count("barrier=0") + mount.options.count("nobarrier") +
                           mount.options.count("barrier=none") >  // of reiserfs
                       0;
  if (!without) {
    return mount.unshown.complete ? ok("it is mounted with barriers") : unknown_for_options("whether it has barriers");
  }
  const auto disks = disks_named(facts, mount.disks);
  if (std::none_of(disks.begin(), disks.end(), [](const auto* disk) { return disk->device.write_back_cache; })) {
    return info("it is mounted without barriers", "no disk below has a volatile cache, so they would cost nothing");
  }
  Finding finding = danger("it is mounted without barriers, on a disk with a volatile cache",
                           "a power failure damages the file system and loses synced data");
  if (const auto mountpoint = word_or_why(mount.mountpoint, finding)) {
    finding.change = fmt::format("mount -o remount,barrier {}", *mountpoint);
    finding.persistent =
        permanently(mount, mount.options.count("nobarrier") > 0 ? "nobarrier" : "barrier=0", *mountpoint);
    finding.undo = fmt::format("mount -o remount,nobarrier {}  # and the former options in /etc/fstab", *mountpoint);
  }
  finding.risk = "each sync waits for the drive, as it must";
  return finding;
}

struct WrittenPerDay {
  std::optional<double> of_class;
  std::optional<double> all;
};

/// To the disks below a mount, in bytes.
WrittenPerDay written_per_day(const Facts& facts, const MountSettings& mount, model::WriteClass write_class) {
  WrittenPerDay written;
  for (const std::string& disk : mount.disks) {
    const MeasuredDevice& device = facts.measured.device(disk);
    add_figure(written.of_class, facts.measured.per_day(device.written_bytes_by(write_class)));
    add_figure(written.all, facts.measured.per_day(device.all_written_bytes()));
  }
  return written;
}

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
    if (const auto mountpoint = word_or_why(mount.mountpoint, finding)) {
      finding.change = permanently(mount, "data=writeback", *mountpoint) + ", then unmount it and mount it again";
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
  if (const auto mountpoint = word_or_why(mount.mountpoint, bad)) {
    bad.change = permanently(mount, "data=journal", *mountpoint) + ", then unmount it and mount it again";
  }
  bad.undo = "add it again";
  bad.risk = "a write that was not synced may be lost in part";
  const auto [journal, all] = written_per_day(facts, mount, model::WriteClass::journal);
  return weigh(facts, std::move(bad),
               {{"journal_share", ratio(journal, all), kJournalShare}, {"wear_bytes_per_day", journal, kWearLimit}});
}

constexpr double kMetadataShare = 0.3;  // of the bytes written

Finding access_times(const Facts& facts, const MountSettings& mount) {
  for (const char* option : {"noatime", "relatime", "lazytime", "ro"}) {
    if (mount.options.count(option) > 0) {
      return ok(fmt::format("it is mounted with {}", option));
    }
  }
  if (!mount.unshown.complete) {
    return unknown_for_options("whether reads update the access time");
  }
  Finding bad = info("each read updates the access time", "reads become writes");
  if (const auto mountpoint = word_or_why(mount.mountpoint, bad)) {
    bad.change = fmt::format("mount -o remount,nostrictatime,relatime {}", *mountpoint);
    bad.persistent = fmt::format("replace strictatime with relatime in the options of {} in /etc/fstab", *mountpoint);
    bad.undo = fmt::format("mount -o remount,strictatime {}  # and the former options in /etc/fstab", *mountpoint);
  }
  bad.risk = "programs that rely on access times do not see every read";
  const auto [metadata, all] = written_per_day(facts, mount, model::WriteClass::metadata);
  return weigh(
      facts, std::move(bad),
      {{"metadata_share", ratio(metadata, all), kMetadataShare}, {"wear_bytes_per_day", metadata, kWearLimit}});
}

constexpr double kFullFilesystem = 0.9;
constexpr double kCostlyAmplification = 2;  // lower bound of write amplification
constexpr double kSoonSeconds = 3 * kSecondsPerDay;

Finding advise_to_free(Finding finding) {
  finding.change = "free up space, or extend it";
  finding.risk = "none known";
  return finding;
}

Finding fullness(const Facts& facts, const MountSettings& mount) {
  if (mount.options.count("ro") > 0 && mount.options.count("rw") == 0) {
    return not_applicable("nothing is written to it: it is mounted read-only");
  }
  if (!mount.answers) {
    return unknown("how full it is", "the file system does not answer");
  }
  if (!mount.used_ratio) {
    return unknown("how full it is", "it was not asked, or this user may not ask");
  }
  const std::string found = fmt::format("{:.0f} % of it is used", 100 * *mount.used_ratio);
  const auto available = facts.measured.mount(mount.mountpoint).available_bytes;
  const auto filling = facts.measured.mount(mount.mountpoint).filling_bytes_per_second;
  if (available && filling && *available > 0 && *filling > 0 && *available / *filling < kSoonSeconds) {
    Finding soon = advise_to_free(info(
        fmt::format("{}, and it will be full in {} at this rate", found, util::duration_text(*available / *filling)),
        "writes to a full file system fail; a database stops"));
    soon.verdict = Verdict::advise;
    soon.evidence["available_bytes"] = *available;
    soon.evidence["filling_bytes_per_second"] = *filling;
    return soon;
  }
  if (*mount.used_ratio <= kFullFilesystem) {
    return ok(found);
  }
  Finding bad =
      advise_to_free(info(found, "files become fragmented, and the drive has little room for its garbage collection"));
  bad.evidence["used_ratio"] = *mount.used_ratio;
  return weigh(
      facts, std::move(bad),
      {{"write_amplification_lower_ratio", write_amplification_at_least(facts, mount.disks), kCostlyAmplification}});
}

constexpr Rule kFileSystemRules[] = {
    {.id = "F7",
     .title = "Mounts without barriers",
     .limit = "danger on every disk with a volatile cache",
     .source = "Documentation/admin-guide/ext4.rst, barrier",
     .of_mount = barriers},
    {.id = "F8",
     .title = "Journal mode of ext4",
     .limit = "the journal is 30 % of the bytes written, and 10 GB a day",
     .source = "Documentation/admin-guide/ext4.rst, data=",
     .of_mount = journal_mode},
    {.id = "F9",
     .title = "Access times",
     .limit = "metadata is 30 % of the bytes written, and 10 GB a day",
     .source = "mount(8), relatime",
     .of_mount = access_times},
    {.id = "F12",
     .title = "Full file systems",
     .limit = "it will be full within 3 days, at the rate of the last hours; or more than 90 % is used, and "
              "the lower bound of write amplification is at least 2",
     .source = "RHEL 7, SSD guidelines",
     .of_mount = fullness},
};

}  // namespace

std::span<const Rule> file_system_rules() { return kFileSystemRules; }

}  // namespace ssdpulse::advice
