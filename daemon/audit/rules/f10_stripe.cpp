// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "daemon/audit/rules/rules.h"

namespace ssdpulse::audit {
namespace {

std::optional<std::uint64_t> option(const MountSettings& mount, const std::string& name) {
  for (const std::string& one : mount.options) {
    if (one.rfind(name + "=", 0) == 0) {
      model::Attributes value;
      value.set("", one.substr(name.size() + 1));
      return value.number("");
    }
  }
  return std::nullopt;
}

Finding stripe(const Facts& facts, const MountSettings& mount) {
  const DiskSettings* array = nullptr;
  for (const DiskSettings& one : facts.settings.arrays) {
    const std::string level = one.files.text("md/level");
    const bool parity = level == "raid4" || level == "raid5" || level == "raid6";
    if (parity && std::find(mount.volumes.begin(), mount.volumes.end(), one.device.name) != mount.volumes.end()) {
      array = &one;
    }
  }
  if (array == nullptr || mount.fstype != "xfs") {
    return not_applicable("it is not an XFS directly on an array with parity");
  }
  const auto chunk = array->files.number("md/chunk_size");
  if (!chunk || *chunk == 0) {
    return unknown("the array's chunk", "md/chunk_size is not readable");
  }
  const auto unit = option(mount, "sunit");  // of 512 bytes
  if (unit && *unit * 512 == *chunk) {
    return ok("it knows the array's stripes");
  }
  Finding bad = info("it does not know the array's stripes", "a write of a part of a stripe reads the rest first");
  const auto disks = array->files.number("md/raid_disks").value_or(0);
  const std::uint64_t data = disks - std::min<std::uint64_t>(disks, array->files.text("md/level") == "raid6" ? 2 : 1);
  if (const auto place = word_or_why(mount.mountpoint, bad)) {
    bad.change = fmt::format("add sunit={},swidth={} to the options of {} in /etc/fstab, then mount it again",
                             *chunk / 512, *chunk / 512 * data, *place);
  }
  bad.undo = "the former options";
  bad.risk = "data already written stays where it is";
  return bad;
}

}  // namespace

const Rule kF10{.id = "F10",
                .title = "Stripes of arrays with parity",
                .limit = "never: the array's own reads cannot be told apart",
                .source = "xfs(5), sunit and swidth",
                .of_mount = stripe};

}  // namespace ssdpulse::audit
