// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "daemon/audit/rules/rules.h"

namespace ssdpulse::audit {
namespace {

Finding member_offsets(const Facts& facts, const DiskSettings& array) {
  const auto chunk = array.files.number("md/chunk_size");
  if (!array.files.has("md/level")) {
    return not_applicable("it is no md array");
  }
  const auto is_member = [&](const DiskSettings& disk) {
    return std::find(array.disks.begin(), array.disks.end(), disk.device.name) != array.disks.end();
  };
  std::uint64_t preferred = 4096;
  std::string crooked;
  for (const DiskSettings& disk : facts.settings.disks) {
    if (!is_member(disk)) {
      continue;
    }
    preferred = std::max<std::uint64_t>(preferred, disk.device.write_granularity_bytes);
    std::vector<std::string> members{disk.device.name};
    for (const model::PartitionSettings& partition : disk.partitions) {
      members.push_back(partition.name);
    }
    for (const std::string& member : members) {
      const auto sectors = array.files.number("md/dev-" + member + "/offset");
      if (sectors && (*sectors * 512) % preferred != 0) {
        crooked += (crooked.empty() ? "" : " ") + member;
      }
    }
  }
  if (!crooked.empty()) {
    Finding bad = info(fmt::format("data that does not begin at a multiple of {} KiB", preferred / 1024),
                       crooked + ": each write to the array touches a page more than it needs");
    bad.change = "build the array again, with mdadm --data-offset=1M";
    bad.undo = "the former array, from a backup";
    bad.risk = "everything on it is lost";
    std::optional<double> wear;
    for (const DiskSettings& disk : facts.settings.disks) {
      const auto one = is_member(disk) ? misaligned_bytes_per_day(facts, disk, preferred) : std::nullopt;
      wear = one ? std::optional(wear.value_or(0) + *one) : wear;
    }
    return weigh(facts, std::move(bad), {{"wear_bytes_per_day", wear, kWearLimit}});
  }
  if (chunk && *chunk != 0 && *chunk < preferred) {
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
