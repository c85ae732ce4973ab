// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "daemon/audit/rules/rules.h"

namespace ssdpulse::audit {
namespace {

constexpr double kFullFilesystem = 0.9;
constexpr double kCostlyAmplification = 2;  // lower bound of write amplification

Finding fullness(const Facts& facts, const MountSettings& mount) {
  if (!mount.used_ratio) {
    return unknown("how full it is", "this user may not query it");
  }
  const std::string found = fmt::format("{:.0f} % of it is used", 100 * *mount.used_ratio);
  if (*mount.used_ratio <= kFullFilesystem) {
    return ok(found);
  }
  Finding bad = info(found, "files become fragmented, and the drive has little room for its garbage collection");
  bad.change = "free up space, or extend it";
  bad.risk = "none known";
  const auto lower = write_amplification_at_least(facts, mount.disks);
  bad.evidence["used_ratio"] = *mount.used_ratio;
  return weigh(facts, std::move(bad), {{"write_amplification_lower_ratio", lower, kCostlyAmplification}});
}

}  // namespace

const Rule kF12{.id = "F12",
                .title = "Full file systems",
                .limit = "more than 90 % is used, and the lower bound of write amplification is at least 2",
                .source = "RHEL 7, SSD guidelines",
                .of_mount = fullness};

}  // namespace ssdpulse::audit
