// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "daemon/advice/rule.h"
#include "daemon/base/number_text.h"

namespace ssdpulse::advice {
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
    if (const auto queue = facts.measured.per_day(all.queue_seconds.sum)) {
      waiting.queue = waiting.queue.value_or(0) + *queue;
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

constexpr double kFullShare = 0.001;                   // of the time, with requests waiting for a tag
constexpr std::uint64_t kMaxSchedulerRequests = 2048;  // MAX_SCHED_RQ of the kernel

/// Seconds during which requests waited for a tag.
std::optional<double> full_per_day(const Facts& facts, const std::string& name) {
  if (const DeviceEvidence* past = evidence_of(facts, name)) {
    double seconds = 0;
    for (const model::OperationInterval& operation : past->load.operations) {
      seconds += static_cast<double>(operation.queue_full_ns) / 1e9;
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
  const auto max_requests = tags && disk.device.scheduler != "none" ? std::min(*tags, kMaxSchedulerRequests) : tags;
  const auto per_day = full_per_day(facts, disk.device.name);
  const auto share = ratio(per_day, kSecondsPerDay);
  if (share.value_or(0) < kFullShare && !(max_requests && *requests < *max_requests)) {
    return ok(fmt::format("room for {} requests", *requests));
  }
  Finding bad =
      info(fmt::format("room for {} requests", *requests), "when all are in use, the next one waits until one ends");
  bad.risk = "a deeper queue means a longer tail inside the drive";
  const std::vector<Evidence> evidence{{"queue_full_share", share, kFullShare},
                                       {"excess_seconds_per_day", per_day, kExcessLimit}};
  if (max_requests && *requests < *max_requests) {
    change_file(bad, disk, "queue/nr_requests", std::to_string(*max_requests));
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
    bad.change =
        "if it continues, raise the driver's depth, rebuild the initramfs (update-initramfs -u or dracut -f), and "
        "restart the host: " +
        bad.persistent;
    bad.undo = "rm -f /etc/modprobe.d/ssdpulse-nvme.conf  # then rebuild the initramfs and restart";
  }
  return bad;
}

constexpr double kSequential = 0.5;      // of the bytes written
constexpr double kWritesPerDay = 100e3;  // fewer have no visible cost

Finding merges(const Facts& facts, const DiskSettings& disk) {
  const auto nomerges = disk.files.number("queue/nomerges");
  if (!nomerges) {
    return unknown("nomerges", "queue/nomerges is not readable");
  }
  if (*nomerges == 0) {
    return ok("neighbouring I/Os are merged");
  }
  Finding bad = info(*nomerges == 1 ? "only simple merges are tried" : "neighbouring I/Os are not merged",
                     "each small sequential write becomes a command of its own");
  change_file(bad, disk, "queue/nomerges", "0");
  bad.risk = "a little CPU for each I/O";
  const MeasuredOperation& writes = facts.measured.device(disk.device.name).operation(Operation::write);
  return weigh(facts, std::move(bad),
               {{"sequential_share_of_writes", ratio(writes.sequential_bytes, writes.bytes), kSequential},
                {"writes_per_day", facts.measured.per_day(writes.size_bytes.count), kWritesPerDay}});
}

constexpr double kReadAheadUsed = 0.75;        // of the read-ahead: from this mean size on, reads are read-ahead
constexpr double kRandom = 0.8;                // share of the bytes read that is not sequential
constexpr double kReadBytesPerDay = 10e9;      // fewer do not matter
constexpr std::uint64_t kSmallReadAhead = 16;  // KiB: what databases ask for

Finding read_ahead(const Facts& facts, const DiskSettings& disk) {
  const auto kilobytes = disk.files.number("queue/read_ahead_kb");
  if (!kilobytes) {
    return unknown("read-ahead", "queue/read_ahead_kb is not readable");
  }
  if (*kilobytes <= kSmallReadAhead) {
    return ok(fmt::format("read-ahead is {} KiB", *kilobytes));
  }
  if (is_unseen(facts, disk)) {
    return not_applicable("none of its I/O is measured");
  }
  const MeasuredOperation& reads = facts.measured.device(disk.device.name).operation(Operation::read);
  const auto random = random_share(reads);
  const auto fullness = ratio(mean(reads.size_bytes), static_cast<double>(*kilobytes) * 1024);
  if (facts.measured.answered && (fullness.value_or(0) < kReadAheadUsed || random.value_or(1) < kRandom)) {
    return ok(fmt::format("read-ahead is {} KiB, and reads are smaller than that, or not random", *kilobytes));
  }
  Finding bad = info(fmt::format("read-ahead is {} KiB", *kilobytes),
                     "with random reads it reads more than was asked for, and evicts better data from the cache");
  change_file(bad, disk, "queue/read_ahead_kb", std::to_string(kSmallReadAhead));
  bad.risk = "scans and backups become slower";
  return weigh(facts, std::move(bad),
               {{"mean_read_to_read_ahead_ratio", fullness, kReadAheadUsed},
                {"random_share_of_reads", random, kRandom},
                {"read_bytes_per_day", facts.measured.per_day(reads.bytes), kReadBytesPerDay}});
}

constexpr std::uint64_t kSpinningDiskTarget = 75000;  // us, the kernel's default for them

Finding writeback_throttling(const Facts& facts, const DiskSettings& disk) {
  const auto target = disk.files.number("queue/wbt_lat_usec");
  if (!target) {
    return not_applicable("the kernel does not throttle writeback on this disk");
  }
  if (*target != kSpinningDiskTarget || disk.device.rotational) {
    return ok(*target == 0 ? "writeback is not throttled" : fmt::format("writeback may delay reads by {} us", *target));
  }
  Finding bad = info("writeback is throttled as on a spinning disk",
                     "reads may wait 75 ms for writeback before it gives way; on SSDs the kernel's target is 2 ms");
  change_file(bad, disk, "queue/wbt_lat_usec", "-1");
  bad.risk = "background writes are throttled sooner";
  return weigh(facts, std::move(bad), {excess_evidence(facts, disk, {SpikeCause::queue, SpikeCause::saturation})});
}

constexpr double kFasterThanSpinning = 0.001;  // seconds
constexpr double kSlowAsSpinning = 0.005;
constexpr double kMinReads = 10'000;  // fewer may all have come from a cache

struct Reads {
  std::optional<double> mean_seconds;
  std::optional<double> count;
};

Reads reads_of(const Facts& facts, const std::string& name) {
  using model::Latency;
  if (const DeviceEvidence* past = evidence_of(facts, name)) {
    const LatencyTotal all = latency_total(*past, {Latency::read_device_none, Latency::read_device_discard,
                                                   Latency::read_device_flush, Latency::read_device_both});
    return {all.mean(), all.ios};
  }
  const Distribution& seconds = facts.measured.device(name).operation(Operation::read).device_seconds;
  return {mean(seconds), seconds.count};
}

Finding rotational(const Facts& facts, const DiskSettings& disk) {
  if (!disk.files.number("queue/rotational")) {
    return unknown("whether it spins", "queue/rotational is not readable");
  }
  const auto [seconds, count] = reads_of(facts, disk.device.name);
  if (!disk.device.rotational) {
    if (seconds.value_or(0) < kSlowAsSpinning || count.value_or(0) < kMinReads) {
      return ok("the kernel considers it an SSD");
    }
    Finding finding =
        info("the kernel considers it an SSD, yet its reads take as long as a spinning disk's",
             "it may be a spinning disk behind a controller or hypervisor, or something slows it down: run "
             "`ssdpulse why`");
    finding.evidence = {{"mean_read_seconds", *seconds}, {"reads", *count}};
    return finding;
  }
  if (seconds.value_or(1) >= kFasterThanSpinning) {
    Finding finding =
        info("the kernel considers it a spinning disk", "it is as slow as one, or too little was read to tell");
    finding.evidence["reads"] = count.value_or(0);
    if (seconds) {
      finding.evidence["mean_read_seconds"] = *seconds;
    }
    return finding;
  }
  Finding bad = info("the kernel considers it a spinning disk",
                     "its reads are faster than any spinning disk's; writeback, swap and file "
                     "systems choose what suits spinning disks");
  change_file(bad, disk, "queue/rotational", "0");
  bad.risk = "none known";
  bad.evidence["mean_read_seconds"] = *seconds;
  return weigh(facts, std::move(bad), {{"reads", count, kMinReads}});
}

Finding write_cache(const Facts&, const DiskSettings& disk) {
  const util::OutsideText kernel = disk.files.text("queue/write_cache");
  if (kernel.empty()) {
    return unknown("the write cache", "queue/write_cache is not readable");
  }
  // What the drive reports about itself, where the kernel shows it: SCSI and virtio.
  const util::OutsideText drive =
      disk.files.has("scsi_cache_type") ? disk.files.text("scsi_cache_type") : disk.files.text("cache_type");
  const bool volatile_cache = drive.starts_with("write back");
  if (kernel == "write through" && volatile_cache) {
    Finding finding = danger("the kernel sends no flushes to a drive with a volatile cache",
                             "synced data is lost when the power fails");
    change_file(finding, disk, "queue/write_cache", "write back");
    finding.risk = "each sync waits for the drive, as it must";
    return finding;
  }
  return ok(fmt::format("the kernel's view is {}{}", util::for_json(kernel),
                        drive.empty() ? "" : ", the drive's is " + util::for_json(drive)));
}

constexpr std::uint64_t kSmallRequest = 128;        // KiB
constexpr std::uint64_t kOldDefaultRequest = 1280;  // KiB, which every drive is known to accept

Finding request_size(const Facts& facts, const DiskSettings& disk) {
  const auto limit = disk.files.number("queue/max_sectors_kb");
  const auto hardware = disk.files.number("queue/max_hw_sectors_kb");
  if (!limit || !hardware) {
    return unknown("the largest request", "queue/max_sectors_kb is not readable");
  }
  const std::string found = fmt::format("requests are at most {} KiB", *limit);
  const MeasuredDevice& device = facts.measured.device(disk.device.name);
  if (*limit > kOldDefaultRequest && device.timeouts.value_or(0) > 0) {
    Finding bad = info(found, "some drives time out on requests above 1280 KiB, the default until Linux 6.16");
    change_file(bad, disk, "queue/max_sectors_kb", std::to_string(kOldDefaultRequest));
    bad.risk = "large transfers take more commands";
    return weigh(facts, std::move(bad), {{"timeouts", device.timeouts, 1}});
  }
  if (*limit < kSmallRequest && *limit < *hardware) {
    Finding bad = info(found, "larger ones are split, although the drive takes more");
    change_file(bad, disk, "queue/max_sectors_kb", std::to_string(std::min(*hardware, kOldDefaultRequest)));
    bad.risk = "large writes delay small reads";
    const auto size = mean(device.operation(Operation::write).size_bytes);
    return weigh(facts, std::move(bad),
                 {{"mean_write_to_limit_ratio", ratio(size, static_cast<double>(*limit) * 1024), 0.75}});
  }
  return ok(found);
}

Finding statistics(const Facts& facts, const DiskSettings& disk) {
  const auto iostats = disk.files.number("queue/iostats");
  if (!iostats) {
    return unknown("statistics", "queue/iostats is not readable");
  }
  if (*iostats != 0) {
    return ok("the kernel keeps statistics");
  }
  if (is_unseen(facts, disk)) {
    return not_applicable("none of its requests is seen, with statistics or without");
  }
  Finding bad = info("the kernel keeps no statistics", "no total latency, no spikes, and nothing in iostat");
  change_file(bad, disk, "queue/iostats", "1");
  bad.risk = "the kernel reads its clock twice for each I/O, as it does by default";
  const double unstamped = facts.measured.device(disk.device.name).unstamped_ios.value_or(0);
  if (unstamped > 0) {  // nothing to weigh: none of them was measured
    bad.evidence["unstamped_ios"] = unstamped;
    bad.verdict = Verdict::advise;
  }
  return bad;
}

constexpr std::uint64_t kHangTimeout = 600'000;  // ms: a host that hangs for ten minutes is down
constexpr std::uint64_t kDefaultTimeout = 30'000;

Finding timeout(const Facts& facts, const DiskSettings& disk) {
  const auto milliseconds = disk.files.number("queue/io_timeout");
  if (!milliseconds) {
    return disk.files.has("queue/nr_requests")
               ? not_applicable("its driver has no time limit")
               : unknown("the time limit of an I/O", "queue/io_timeout is not readable");
  }
  const std::string found = fmt::format("an I/O may take {} s", *milliseconds / 1000);
  const bool cloud = disk.device.model.starts_with("Amazon Elastic Block Store");
  if (cloud && *milliseconds <= kDefaultTimeout) {
    Finding bad = info(found, "a cloud volume that stalls longer gives errors, and file systems become read-only");
    change_file(bad, disk, "queue/io_timeout", "4294967295");
    bad.risk = "programs hang for as long as the volume does";
    return weigh(facts, std::move(bad), {{"timeouts", facts.measured.device(disk.device.name).timeouts, 1}});
  }
  if (!cloud && *milliseconds >= kHangTimeout) {
    Finding finding = info(found, "a dead drive hangs the host for that long");
    change_file(finding, disk, "queue/io_timeout", std::to_string(kDefaultTimeout));
    finding.risk = "a drive that stalls for longer gives errors";
    return finding;
  }
  return ok(found);
}

constexpr std::uint64_t kLargeDiscard = 256U << 20U;  // bytes
constexpr std::uint64_t kModestDiscard = 128U << 20U;

struct MeanDiscard {
  std::optional<double> seconds;
  std::optional<double> bytes;
};

MeanDiscard mean_discard(const Facts& facts, const std::string& name) {
  if (const DeviceEvidence* past = evidence_of(facts, name)) {
    const model::OperationInterval& all = past->load.operations.at(model::index(Operation::discard));
    return {latency_total(*past, {model::Latency::discard}).mean(),
            ratio(static_cast<double>(all.bytes), static_cast<double>(all.ios))};
  }
  const MeasuredOperation& discards = facts.measured.device(name).operation(Operation::discard);
  return {mean(discards.device_seconds), mean(discards.size_bytes)};
}

Finding discard_size(const Facts& facts, const DiskSettings& disk) {
  const auto max_bytes = disk.files.number("queue/discard_max_bytes");
  if (!max_bytes) {
    return unknown("the largest discard", "queue/discard_max_bytes is not readable");
  }
  if (*max_bytes == 0) {
    return not_applicable("the disk accepts no discards");
  }
  const std::string found = fmt::format("a discard may be {} MiB", *max_bytes >> 20U);
  if (*max_bytes <= kLargeDiscard) {
    return ok(found);
  }
  const auto granularity = disk.files.number("queue/discard_granularity").value_or(0);
  if (granularity > 0 && kModestDiscard % granularity != 0) {
    return not_applicable("the disk discards in larger pieces");
  }
  Finding bad = info(found, "a drive that takes long for one makes reads wait");
  // The kernel refuses anything but a multiple (EINVAL), yet its own default may not be one.
  const std::uint64_t before = granularity > 0 ? *max_bytes / granularity * granularity : *max_bytes;
  change_file(bad, disk, "queue/discard_max_bytes", std::to_string(kModestDiscard), std::to_string(before));
  bad.risk = "more commands, and longer bursts";
  const auto [seconds, size] = mean_discard(facts, disk.device.name);
  if (seconds) {
    bad.evidence["mean_discard_seconds"] = *seconds;
  }
  return weigh(facts, std::move(bad),
               {excess_evidence(facts, disk, {SpikeCause::discard}),
                {"mean_discard_bytes", size, static_cast<double>(kModestDiscard) / 8}});
}

Finding queues(const Facts& facts, const DiskSettings& disk) {
  if (!facts.settings.cpus || disk.device.paths.empty()) {
    return unknown("hardware queues", "the CPUs of the host cannot be counted");
  }
  const std::uint32_t count = disk.device.paths.front().hardware_queues;
  const std::string& transport = disk.device.transport;
  if (transport != "nvme" && transport != "virtio") {
    return not_applicable("it has a single queue by design");
  }
  const std::string found = fmt::format("{} for {}", util::count_text(count, "hardware queue"),
                                        util::count_text(*facts.settings.cpus, "CPU"));
  if (count >= *facts.settings.cpus) {
    return ok(found);
  }
  Finding bad = info(found, "CPUs that share a queue wait for its lock");
  if (transport != "virtio") {
    bad.why += "; the drive has no more";
    return bad;
  }
  bad.change =
      "on its host, set num-queues= of the virtual disk to the number of CPUs; then stop and start the virtual machine";
  bad.risk = "memory of the virtual machine";
  return weigh(facts, std::move(bad), {excess_evidence(facts, disk, {SpikeCause::queue})});
}

constexpr Rule kQueueRules[] = {
    {.id = "Q1",
     .title = "I/O scheduler of drives with several queues",
     .limit = "reads and writes spend 10 % of their time, and 60 s a day, before the drive",
     .source = "block/elevator.c; RHEL 9, Setting the disk scheduler",
     .by_history = true,
     .of_disk = scheduler},
    {.id = "Q2",
     .title = "Requests that a disk may have outstanding",
     .limit = "for 0.1 % of the time, and 60 s a day, requests waited for a tag that the driver has",
     .source = "block/blk-sysfs.c",
     .by_history = true,
     .of_disk = queue_depth},
    {.id = "Q3",
     .title = "Merging of neighbouring I/Os",
     .limit = "half of the bytes written are sequential, in 100,000 writes a day",
     .source = "Documentation/ABI/stable/sysfs-block, nomerges",
     .of_disk = merges},
    {.id = "Q5",
     .title = "Read-ahead under random reads",
     .limit = "reads are as large as the read-ahead, 80 % of them random, 10 GB a day",
     .source = "MongoDB production notes, Readahead (there in sectors of 512 bytes)",
     .of_disk = read_ahead},
    {.id = "Q6",
     .title = "Target of writeback throttling",
     .limit = "queueing or saturation causes 60 s of waiting a day",
     .source = "block/blk-wbt.c; Documentation/ABI/stable/sysfs-block, wbt_lat_usec",
     .by_history = true,
     .of_disk = writeback_throttling},
    {.id = "Q7",
     .title = "SSDs that the kernel considers spinning disks",
     .limit = "the mean of 10,000 reads is below 1 ms",
     .source = "Documentation/ABI/stable/sysfs-block, rotational",
     .by_history = true,
     .of_disk = rotational},
    {.id = "Q8",
     .title = "Flushes that the kernel leaves out",
     .limit = "danger wherever the two views differ",
     .source = "Documentation/ABI/stable/sysfs-block, write_cache",
     .of_disk = write_cache},
    {.id = "Q9",
     .title = "Largest request",
     .limit = "a request timed out; or the mean write is 75 % of a limit below 128 KiB",
     .source = "Debian bug 1120831; Linux commit 9b8b84879d4a",
     .of_disk = request_size},
    {.id = "Q10",
     .title = "The kernel's statistics",
     .limit = "one I/O could not be measured",
     .source = "Documentation/ABI/stable/sysfs-block, iostats",
     .days = 0,
     .of_disk = statistics},
    {.id = "Q11",
     .title = "Time limit of an I/O",
     .limit = "an I/O of a cloud volume timed out",
     .source = "Amazon EBS, NVMe I/O operation timeout; nvme core.c",
     .of_disk = timeout},
    {.id = "Q13",
     .title = "Largest discard",
     .limit = "discards of 16 MiB and more on average cause 60 s of waiting a day",
     .source = "Documentation/ABI/stable/sysfs-block, discard_max_bytes",
     .by_history = true,
     .of_disk = discard_size},
    {.id = "Q14",
     .title = "Hardware queues against CPUs",
     .limit = "queueing causes 60 s of waiting a day in a virtual machine",
     .source = "QEMU, virtio-blk num-queues",
     .by_history = true,
     .of_disk = queues},
};

}  // namespace

std::span<const Rule> queue_rules() { return kQueueRules; }

}  // namespace ssdpulse::advice
