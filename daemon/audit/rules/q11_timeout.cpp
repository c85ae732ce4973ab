// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "daemon/audit/rules/rules.h"

namespace ssdpulse::audit {
namespace {

constexpr std::uint64_t kForEver = 600'000;  // ms: a host that hangs for ten minutes is down
constexpr std::uint64_t kDefault = 30'000;

Finding timeout(const Facts& facts, const DiskSettings& disk) {
  const auto milliseconds = disk.files.number("queue/io_timeout");
  if (!milliseconds) {
    return disk.files.has("queue/nr_requests")
               ? not_applicable("its driver has no time limit")
               : unknown("the time limit of an I/O", "queue/io_timeout is not readable");
  }
  const std::string found = fmt::format("an I/O may take {} s", *milliseconds / 1000);
  const bool cloud = disk.device.model.starts_with("Amazon Elastic Block Store");
  const auto timeouts = facts.measured.device(disk.device.name).timeouts;
  if (cloud && *milliseconds <= kDefault) {
    Finding bad = info(found, "a cloud volume that stalls longer gives errors, and file systems become read-only");
    change_file(bad, disk, "queue/io_timeout", "4294967295");
    bad.risk = "programs hang for as long as the volume does";
    return weigh(facts, std::move(bad), {{"timeouts", timeouts, 1}});
  }
  if (!cloud && *milliseconds >= kForEver) {
    Finding finding = info(found, "a dead drive hangs the host for as long");
    change_file(finding, disk, "queue/io_timeout", std::to_string(kDefault));
    finding.risk = "a drive that stalls for longer gives errors";
    return finding;
  }
  return ok(found);
}

}  // namespace

const Rule kQ11{.id = "Q11",
                .title = "Time limit of an I/O",
                .limit = "an I/O of a cloud volume timed out",
                .source = "Amazon EBS, NVMe I/O operation timeout; nvme core.c",
                .of_disk = timeout};

}  // namespace ssdpulse::audit
