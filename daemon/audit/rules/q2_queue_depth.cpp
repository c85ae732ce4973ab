// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "daemon/audit/rules/rules.h"

namespace ssdpulse::audit {
namespace {

constexpr double kFullShare = 0.001;                   // of the time, with requests waiting for a tag
constexpr std::uint64_t kMaxSchedulerRequests = 2048;  // MAX_SCHED_RQ of the kernel

/// Seconds during which requests waited for a tag.
std::optional<double> full_per_day(const Facts& facts, const std::string& name) {
  if (const DeviceEvidence* past = evidence_of(facts, name)) {
    double seconds = 0;
    for (const model::OperationInterval& one : past->load.operations) {
      seconds += static_cast<double>(one.queue_full_ns) / 1e9;
    }
    return past->per_day(seconds);
  }
  return facts.measured.per_day(facts.measured.device(name).queue_full_seconds);
}

Finding queue_depth(const Facts& facts, const DiskSettings& disk) {
  const auto requests = disk.files.number("queue/nr_requests");
  if (!requests) {
    return unknown("nr_requests", "queue/nr_requests is not readable");
  }
  const auto tags = disk.files.number("mq/0/nr_tags");
  // The kernel refuses more (EINVAL) than the driver's tags under `none`, or than its own limit under a scheduler.
  const auto most = tags && disk.device.scheduler != "none" ? std::min(*tags, kMaxSchedulerRequests) : tags;
  const auto per_day = full_per_day(facts, disk.device.name);
  const auto share = ratio(per_day, kSecondsPerDay);
  if (share.value_or(0) < kFullShare && !(most && *requests < *most)) {
    return ok(fmt::format("room for {} requests", *requests));
  }
  Finding bad =
      info(fmt::format("room for {} requests", *requests), "when all are in use, the next one waits until one ends");
  bad.risk = "a deeper queue means a longer tail inside the drive";
  const std::vector<Evidence> evidence{{"queue_full_share", share, kFullShare},
                                       {"excess_seconds_per_day", per_day, kExcessLimit}};
  if (most && *requests < *most) {
    change_file(bad, disk, "queue/nr_requests", std::to_string(*most));
    return weigh(facts, std::move(bad), evidence);
  }
  // It is unknown whether they were full before or after nr_requests was raised: no advice.
  bad.evidence["queue_full_share"] = share.value_or(0);
  if (tags && *requests < *tags) {
    bad.why += "; a scheduler takes no more";
    return bad;
  }
  bad.why += "; the driver has no more tags";
  if (disk.device.transport == "nvme" && tags) {
    bad.persistent = fmt::format("echo options nvme io_queue_depth={} > /etc/modprobe.d/ssdpulse-nvme.conf",
                                 std::min<std::uint64_t>(4095, 2 * (*tags + 1)));
    bad.change = "if it continues, raise the driver's depth, and restart the host: " + bad.persistent;
    bad.undo = "rm /etc/modprobe.d/ssdpulse-nvme.conf";
  }
  return bad;
}

}  // namespace

const Rule kQ2{.id = "Q2",
               .title = "Requests that a disk may have outstanding",
               .limit = "for 0.1 % of the time, and 60 s a day, requests waited for a tag that the driver has",
               .source = "block/blk-sysfs.c",
               .by_history = true,
               .of_disk = queue_depth};

}  // namespace ssdpulse::audit
