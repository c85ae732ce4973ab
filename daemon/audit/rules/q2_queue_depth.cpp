// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "daemon/audit/rules/rules.h"

namespace ssdpulse::audit {
namespace {

constexpr double kFullShare = 0.001;  // of the time, in which requests waited for a tag

Finding queue_depth(const Facts& facts, const DiskSettings& disk) {
  const auto requests = disk.files.number("queue/nr_requests");
  if (!requests) {
    return unknown("nr_requests", "queue/nr_requests is not readable");
  }
  const auto tags = disk.files.number("mq/0/nr_tags");
  const auto waited = facts.measured.sum("ssdpulse_io_queue_full_seconds_total", {{"device", disk.device.name}});
  const auto share = ratio(waited, facts.measured.observed_seconds());
  const auto per_day = facts.measured.per_day("ssdpulse_io_queue_full_seconds_total", {{"device", disk.device.name}});
  if (share.value_or(0) < kFullShare && !(tags && *requests < *tags)) {
    return ok(fmt::format("room for {} requests", *requests));
  }
  Finding bad =
      info(fmt::format("room for {} requests", *requests), "when all are in use, the next one waits for its end");
  bad.risk = "a deeper queue is a longer tail inside the drive";
  const std::vector<Evidence> evidence{{"queue_full_share", share, kFullShare},
                                       {"excess_seconds_per_day", per_day, kExcessLimit}};
  if (tags && *requests < *tags) {
    // Under `none` the kernel refuses more than the driver's tags (EINVAL).
    change_file(bad, disk, "queue/nr_requests", std::to_string(*tags));
    return weigh(facts, std::move(bad), evidence);
  }
  // Whether they were full before nr_requests was raised or after it is not known: no advice.
  bad.evidence["queue_full_share"] = share.value_or(0);
  bad.why += "; the driver has no more tags";
  if (disk.device.transport == "nvme" && tags) {
    bad.persistent = fmt::format("echo options nvme io_queue_depth={} > /etc/modprobe.d/ssdpulse-nvme.conf",
                                 std::min<std::uint64_t>(4095, 2 * (*tags + 1)));
    bad.change = "if it goes on, raise the driver's depth, and restart the host: " + bad.persistent;
    bad.undo = "rm /etc/modprobe.d/ssdpulse-nvme.conf";
  }
  return bad;
}

}  // namespace

const Rule kQ2{.id = "Q2",
               .title = "Requests that a disk may have outstanding",
               .limit = "for 0.1 % of the time, and 60 s a day, requests waited for a tag that the driver has",
               .source = "block/blk-sysfs.c",
               .of_disk = queue_depth};

}  // namespace ssdpulse::audit
