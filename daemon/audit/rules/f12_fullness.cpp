// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "daemon/audit/rules/rules.h"

namespace ssdpulse::audit {
namespace {

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
        fmt::format("{}, and it will be full in {} if it goes on like this", found, duration(*available / *filling)),
        "whoever writes to a full file system fails; a database stops"));
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
  const auto lower = write_amplification_at_least(facts, mount.disks);
  bad.evidence["used_ratio"] = *mount.used_ratio;
  return weigh(facts, std::move(bad), {{"write_amplification_lower_ratio", lower, kCostlyAmplification}});
}

}  // namespace

const Rule kF12{.id = "F12",
                .title = "Full file systems",
                .limit =
                    "it will be full within 3 days, at the rate of the last hours; or more than 90 % is used, and "
                    "the lower bound of write amplification is at least 2",
                .source = "RHEL 7, SSD guidelines",
                .of_mount = fullness};

}  // namespace ssdpulse::audit
