// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "daemon/audit/rules/rules.h"

namespace ssdpulse::audit {
namespace {

/// Members of an array that are this disk or partitions of it, and whose data does not begin at a multiple of `unit`.
std::string crooked_members(const DiskSettings& array, const DiskSettings& disk, std::uint64_t unit) {
  std::string crooked;
  for (const std::string& member : model::names_of_volumes(disk)) {
    const auto sectors = array.files.number("md/dev-" + member + "/offset");
    if (sectors && (*sectors * 512) % unit != 0) {
      crooked += (crooked.empty() ? "" : " ") + member;
    }
  }
  return crooked;
}

struct Members {
  std::uint64_t largest_unit = kFlashPage;  // of all
  std::uint64_t crooked_unit = 0;           // the largest of those that are crooked
  std::string crooked;                      // their names
  std::optional<double> wear = 0;           // their bytes a day; nothing if one of them is not counted
};

Members members_of(const Facts& facts, const DiskSettings& array) {
  Members all;
  for (const DiskSettings& disk : facts.settings.disks) {
    if (std::find(array.disks.begin(), array.disks.end(), disk.device.name) == array.disks.end()) {
      continue;
    }
    const std::uint64_t unit = std::max<std::uint64_t>(kFlashPage, disk.device.write_granularity_bytes);
    all.largest_unit = std::max(all.largest_unit, unit);
    const std::string crooked = crooked_members(array, disk, unit);
    if (crooked.empty()) {
      continue;
    }
    all.crooked += (all.crooked.empty() ? "" : " ") + crooked;
    all.crooked_unit = std::max(all.crooked_unit, unit);
    const auto one = misaligned_bytes_per_day(facts, disk, unit);
    all.wear = all.wear && one ? std::optional(*all.wear + *one) : std::nullopt;
  }
  return all;
}

Finding member_offsets(const Facts& facts, const DiskSettings& array) {
  const auto chunk = array.files.number("md/chunk_size");
  if (!array.files.has("md/level")) {
    return not_applicable("it is not an md array");
  }
  const Members members = members_of(facts, array);
  if (!members.crooked.empty()) {
    Finding bad = info(fmt::format("data that does not begin at a multiple of {} KiB", members.crooked_unit / 1024),
                       members.crooked + ": each write to the array touches a page more than it needs");
    bad.change = "build the array again, with mdadm --data-offset=1M";
    bad.undo = "the former array, from a backup";
    bad.risk = "everything on it is lost";
    return weigh(facts, std::move(bad), {{"wear_bytes_per_day", members.wear, kWearLimit}});
  }
  if (chunk && *chunk != 0 && *chunk < members.largest_unit) {
    return info(fmt::format("chunks of {} KiB are smaller than what the drives prefer", *chunk / 1024),
                "full stripes are parts of pages");
  }
  return ok("chunks and offsets fit the drives");
}

}  // namespace

const Rule kN3{.id = "N3",
               .title = "Offsets and chunks of md arrays",
               .limit = "10 GB a day are misaligned on the members",
               .source = "Documentation/ABI/stable/sysfs-block, minimum_io_size; md(4)",
               .of_array = member_offsets};

}  // namespace ssdpulse::audit
