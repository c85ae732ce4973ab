// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "daemon/audit/rules/rules.h"

namespace ssdpulse::audit {
namespace {

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
  if (const auto place = word_or_why(mount.mountpoint, bad)) {
    bad.change = fmt::format("mount -o remount,relatime {}", *place);
    bad.persistent = fmt::format("add relatime to the options of {} in /etc/fstab", *place);
    bad.undo = fmt::format("mount -o remount,strictatime {}  # and the former options in /etc/fstab", *place);
  }
  bad.risk = "programs that rely on access times do not see every read";
  std::optional<double> metadata;
  std::optional<double> all;
  for (const std::string& disk : mount.disks) {
    const MeasuredDevice& device = facts.measured.device(disk);
    add_figure(metadata, facts.measured.per_day(device.written_bytes_by(model::WriteClass::metadata)));
    add_figure(all, facts.measured.per_day(device.all_written_bytes()));
  }
  return weigh(
      facts, std::move(bad),
      {{"metadata_share", ratio(metadata, all), kMetadataShare}, {"wear_bytes_per_day", metadata, kWearLimit}});
}

}  // namespace

const Rule kF9{.id = "F9",
               .title = "Access times",
               .limit = "metadata is 30 % of the bytes written, and 10 GB a day",
               .source = "mount(8), relatime",
               .of_mount = access_times};

}  // namespace ssdpulse::audit
