// SPDX-License-Identifier: Apache-2.0
#include "daemon/audit/rules/rules.h"

namespace ssdpulse::audit {
namespace {

// Below this, the scheduler's work is negligible next to the drive's own time.
constexpr double kQueueShare = 0.1;

/// Seconds that reads and writes spend before the drive, and in total.
struct Waiting {
  std::optional<double> queue;
  std::optional<double> total;
};

Waiting waiting_per_day(const Facts& facts, const std::string& name) {
  using model::Latency;
  if (const DeviceEvidence* past = evidence_of(facts, name)) {
    return {past->per_day(latency_total(*past, {Latency::read_queue, Latency::write_queue}).seconds),
            past->per_day(latency_total(*past, {Latency::read_total, Latency::write_total}).seconds)};
  }
  Waiting waiting;
  for (const Operation operation : {Operation::read, Operation::write}) {
    const MeasuredOperation& all = facts.measured.device(name).operation(operation);
    if (const auto one = facts.measured.per_day(all.queue_seconds.sum)) {
      waiting.queue = waiting.queue.value_or(0) + *one;
      waiting.total = waiting.total.value_or(0) + facts.measured.per_day(all.total_seconds.sum).value_or(0);
    }
  }
  return waiting;
}

Finding scheduler(const Facts& facts, const DiskSettings& disk) {
  const std::string& active = disk.device.scheduler;
  if (active.empty()) {
    return unknown("the scheduler", "queue/scheduler is not readable");
  }
  if (disk.device.rotational) {
    return not_applicable("the kernel considers it a spinning disk");
  }
  const util::OutsideText zoned = disk.files.text("queue/zoned");
  if (!zoned.empty() && zoned != "none") {
    return not_applicable("zoned disks need mq-deadline to keep writes in order");
  }
  const std::uint32_t queues = disk.device.paths.empty() ? 1 : disk.device.paths.front().hardware_queues;
  if (active == "none" || (disk.device.transport != "nvme" && queues <= 1)) {
    return ok("the scheduler is " + active);
  }
  if (!disk.files.text("queue/scheduler").contains("none")) {
    return not_applicable("the kernel offers no other scheduler");
  }
  Finding bad =
      info("the scheduler is " + active, "on a drive with its own queues it costs work and a lock for each I/O");
  change_file(bad, disk, "queue/scheduler", "none");
  bad.risk = active == "bfq" ? "weights of bfq are lost" : "nothing orders reads before writes any more";
  const auto [queue, total] = waiting_per_day(facts, disk.device.name);
  return weigh(
      facts, std::move(bad),
      {{"queue_time_share", ratio(queue, total), kQueueShare}, {"excess_seconds_per_day", queue, kExcessLimit}});
}

}  // namespace

const Rule kQ1{.id = "Q1",
               .title = "I/O scheduler of drives with several queues",
               .limit = "reads and writes spend 10 % of their time, and 60 s a day, before the drive",
               .source = "block/elevator.c; RHEL 9, Setting the disk scheduler",
               .by_history = true,
               .of_disk = scheduler};

}  // namespace ssdpulse::audit
