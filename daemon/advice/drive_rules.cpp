// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <sstream>

#include "daemon/advice/known_bad_firmware.h"
#include "daemon/advice/rule.h"
#include "daemon/base/glob.h"

namespace ssdpulse::advice {
namespace {

constexpr std::array kRanks{"best", "better", "good", "degraded"};  // NVM Command Set, relative performance

const char* rank_text(double rank) { return kRanks[static_cast<std::size_t>(std::clamp(rank, 0.0, 3.0))]; }

std::optional<double> rank_of(const Facts& facts, const DiskSettings& disk, std::uint32_t block_bytes) {
  const auto& ranks = facts.measured.device(disk.device.name).block_size_ranks;
  const auto found = ranks.find(block_bytes);
  return found == ranks.end() ? std::nullopt : std::optional(found->second);
}

Finding block_size(const Facts& facts, const DiskSettings& disk) {
  if (disk.controller_name.empty()) {
    return not_applicable("it is not an NVMe drive");
  }
  const std::uint32_t now = disk.device.logical_block_bytes;
  const auto rank = rank_of(facts, disk, now);
  if (!rank) {
    return unknown("how fast its block size is", facts.measured.answered
                                                     ? "it was not read yet, or it is formatted with metadata"
                                                     : "no daemon answers");
  }
  const std::uint32_t other = now == 512 ? 4096 : 512;  // the only two that file systems can rely on
  const auto rank_of_other = rank_of(facts, disk, other);
  if (!rank_of_other || *rank_of_other >= *rank) {
    return ok(fmt::format("the drive ranks no block size higher than its own, {} bytes", now));
  }
  Finding bad = info(fmt::format("formatted with blocks of {} bytes, which the drive ranks as {}, and {} bytes as {}",
                                 now, rank_text(*rank), other, rank_text(*rank_of_other)),
                     "the drive says so itself, and a format erases everything on it, on some drives all namespaces");
  // No command: nothing here sees everything that may be on it (an inactive volume, a mount elsewhere, swap).
  bad.change = fmt::format("format the next drive of this model with blocks of {} bytes, before it is used", other);
  bad.undo = "format it again, while it is empty";
  bad.risk = "systems that boot from it must know such blocks";
  return weigh(facts, std::move(bad),
               {{"ranks_above", *rank - *rank_of_other, 1},
                excess_evidence(facts, disk, {SpikeCause::queue, SpikeCause::saturation})});
}

constexpr double kHighAmplification = 2;    // of the lower bound of the ratio
constexpr double kMinUnpartitioned = 0.07;  // of the drive

Finding overprovisioning(const Facts& facts, const DiskSettings& disk) {
  if (disk.controller_name.empty()) {
    return not_applicable("write amplification is known only for NVMe drives");
  }
  const auto lower = write_amplification_at_least(facts, disk);
  if (!lower) {
    return unknown("write amplification", "it is not known for a whole day yet, or the drive does not report it");
  }
  std::uint64_t used = 0;
  for (const model::PartitionSettings& partition : disk.partitions) {
    used += partition.size_bytes;
  }
  const bool partitioned = !disk.partitions.empty() && disk.device.size_bytes > 0;
  const double unpartitioned =
      partitioned ? 1 - static_cast<double>(used) / static_cast<double>(disk.device.size_bytes) : 0;
  Finding bad =
      info(fmt::format("write amplification is at least {:.2f}, and {}", *lower,
                       partitioned ? fmt::format("{:.0f} % of the drive is in no partition", 100 * unpartitioned)
                                   : "the drive is used as a whole, without partitions"),
           "free space that the drive knows of makes its garbage collection cheaper");
  bad.evidence = {{"write_amplification_lower_ratio", *lower}};
  if (partitioned) {
    bad.evidence["unpartitioned_ratio"] = unpartitioned;
  }
  if (*lower < kHighAmplification) {
    Finding finding = ok(bad.found);
    finding.evidence = bad.evidence;
    return finding;
  }
  if (unpartitioned >= kMinUnpartitioned) {
    bad.why += "; anything beyond that is due to the load";
    return bad;
  }
  bad.change =
      "leave 7 to 28 % of the drive unpartitioned; discard only that range, once (blkdiscard --offset --length)";
  bad.undo = "grow the last partition again";
  bad.risk = "that capacity is lost; shrinking needs a backup; blkdiscard without a range erases the drive";
  const auto host = bytes_per_day(facts, disk.device.name, Operation::write);
  const DeviceEvidence* past = evidence_of(facts, disk.device.name);
  if (past != nullptr && past->media_bytes_per_day) {
    bad.evidence["media_bytes_per_day"] = *past->media_bytes_per_day;
  }
  return weigh(facts, std::move(bad),
               {{"write_amplification_lower_ratio", lower, kHighAmplification},
                {"wear_bytes_per_day", host ? std::optional(*host * (*lower - 1)) : std::nullopt, kWearLimit}});
}

/// "16.0 GT/s PCIe" -> 16
double speed(const std::string& text) {
  double value = 0;
  return std::sscanf(text.c_str(), "%lf", &value) == 1 ? value : 0;
}

Finding link(const Facts& facts, const DiskSettings& disk) {
  const auto text = [&](const char* file) { return disk.controller.text(std::string("device/") + file); };
  if (disk.controller_name.empty() || text("max_link_speed").empty()) {
    return not_applicable("it is not a PCI Express NVMe drive");
  }
  const auto width = disk.controller.number("device/current_link_width");
  const auto max_width = disk.controller.number("device/max_link_width");
  const double now = speed(text("current_link_speed").raw());
  const double best = speed(text("max_link_speed").raw());
  if (!width || !max_width || now <= 0 || best <= 0) {
    return unknown("the link", "the kernel does not know its speed");
  }
  const std::string found =
      fmt::format("the link is x{} at {:g} GT/s, the drive could do x{} at {:g}", *width, now, *max_width, best);
  if (*width >= *max_width && now >= best) {
    return ok(found);
  }
  Finding bad = info(found, "large transfers are slower than the drive; the slot or the board may not have more");
  bad.change = "put it into another slot, or seat it again";
  bad.undo = "move it back to its former slot";
  bad.risk = "the host is down meanwhile";
  return weigh(facts, std::move(bad), {excess_evidence(facts, disk, {SpikeCause::saturation})});
}

constexpr double kMinThrottledSeconds = 60;  // a day

Finding heat(const Facts& facts, const DiskSettings& disk) {
  const std::string controller = drive_of(facts, disk);
  if (controller.empty()) {
    return not_applicable("temperatures are read only from NVMe drives");
  }
  const MeasuredDrive& drive = facts.measured.drive(controller);
  const auto degrees = drive.composite_celsius;
  if (!degrees) {
    return unknown("its temperature", "no daemon has read it");
  }
  const auto throttled = std::max(drive.thermal_throttle_seconds, drive.thermal_management_seconds);
  const auto share = ratio(throttled, drive.power_on_seconds);
  const double per_day = share.value_or(0) * kSecondsPerDay;
  const auto excess = excess_per_day(facts, disk.device.name, {SpikeCause::thermal});
  const std::string found = fmt::format("the drive is at {:.0f} degrees Celsius", *degrees);
  if (per_day < kMinThrottledSeconds && excess.value_or(0) < kExcessLimit) {
    Finding finding = ok(found);
    finding.evidence = {{"temperature_celsius", *degrees}};
    return finding;
  }
  Finding bad = info(found, "it has throttled to cool down, or I/Os waited because of heat");
  bad.change = "improve its cooling: a free slot next to it, faster fans, a heat sink";
  bad.risk = "noise and power";
  if (share) {
    bad.evidence["throttled_seconds_per_day_of_its_life"] = per_day;
  }
  return weigh(facts, std::move(bad), {{"excess_seconds_per_day", excess, kExcessLimit}});
}

using model::DriveCondition;

constexpr DriveCondition kLostData{Verdict::advise, "it has reported unrecovered data errors",
                                   "check that there are other copies of the data, then plan its replacement",
                                   model::kRiskOfReplacing};

/// All conditions are named; the change is that of the most urgent one, of several the first.
void add(Finding& finding, const DriveCondition& condition) {
  const bool first = finding.why.empty();
  finding.why += (first ? "" : "; ") + std::string(condition.meaning);
  if (first || condition.verdict < finding.verdict) {
    finding.verdict = condition.verdict;
    finding.change = condition.advice;
    finding.risk = condition.risk;
  }
}

/// Of all endurance groups of a drive, which may be worn differently: whether it is true of any.
struct Wear {
  bool spare_is_low = false;
  bool life_is_used_up = false;
};

Wear wear_of_groups(const MeasuredDrive& drive) {
  Wear worst;
  for (const auto& [number, group] : drive.endurance_groups) {
    const auto spare = group.available_spare_ratio;
    const auto threshold = group.available_spare_threshold_ratio;
    worst.spare_is_low = worst.spare_is_low || (spare && threshold && *spare < *threshold);
    worst.life_is_used_up = worst.life_is_used_up || group.percentage_used_ratio.value_or(0) >= 1;
  }
  return worst;
}

Finding wear(const Facts& facts, const DiskSettings& disk) {
  const std::string controller = drive_of(facts, disk);
  if (controller.empty()) {
    return not_applicable("wear is read only from NVMe drives");
  }
  const MeasuredDrive& drive = facts.measured.drive(controller);
  const auto used = drive.percentage_used_ratio;
  const auto spare = drive.available_spare_ratio;
  const auto threshold = drive.available_spare_threshold_ratio;
  const auto errors = drive.media_errors;
  if (!used || !spare) {
    return unknown("its wear", "no daemon has read it");
  }
  Finding finding =
      ok(fmt::format("{:.0f} % of its life is used, {:.0f} % of its spare is left", 100 * *used, 100 * *spare));
  finding.evidence = {{"used_ratio", *used}, {"spare_ratio", *spare}, {"media_errors", errors.value_or(0)}};
  const Wear groups = wear_of_groups(drive);
  for (std::size_t i = 0; i < drive.warnings.size(); ++i) {
    const model::DriveWarning& warning = model::kDriveWarnings[i];
    const bool low = warning.label == "available_spare" && ((threshold && *spare < *threshold) || groups.spare_is_low);
    if (low || drive.warnings[i].value_or(0) > 0) {
      add(finding, warning.condition);
    }
  }
  if (*used >= 1 || groups.life_is_used_up) {
    add(finding, model::kLifeUsedUp);
  }
  if (errors.value_or(0) > 0) {
    add(finding, kLostData);
  }
  return finding;
}

struct BadFirmware {
  std::string model;     // shell pattern
  std::string firmware;  // shell pattern
  Verdict verdict = Verdict::danger;
  std::optional<std::uint64_t> hours;  // at which it fails
  std::string text;
  std::string source;
};

std::vector<BadFirmware> read_table() {
  std::vector<BadFirmware> table;
  std::istringstream lines(kKnownBadFirmware);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.front() == '#') {
      continue;
    }
    std::istringstream fields(line);
    std::array<std::string, 6> field;
    for (std::string& text : field) {
      std::getline(fields, text, '|');
      text = text.substr(0, text.find_last_not_of(' ') + 1);
      text.erase(0, text.find_first_not_of(' '));
    }
    model::Attributes hours;
    hours.set("", field[3]);
    table.push_back({field[0], field[1], field[2] == "danger" ? Verdict::danger : Verdict::info, hours.number(""),
                     field[4], field[5]});
  }
  return table;
}

Finding firmware(const Facts& facts, const DiskSettings& disk) {
  const util::OutsideText& revision = disk.device.firmware;
  if (disk.device.model.empty() || revision.empty()) {
    return disk.device.transport == "nvme" || disk.device.transport == "sata"
               ? unknown("its firmware", "neither sysfs nor the drive reports it")
               : not_applicable("it has no firmware of its own");
  }
  static const auto& table = *new std::vector<BadFirmware>(read_table());
  for (const BadFirmware& bad : table) {
    if (!util::glob_matches(bad.model, disk.device.model.raw()) || !util::glob_matches(bad.firmware, revision.raw())) {
      continue;
    }
    Finding finding = info("firmware " + util::for_json(revision) + " of " + util::for_json(disk.device.model),
                           bad.text + " (" + bad.source + ")");
    finding.verdict = bad.verdict;
    const auto on = facts.measured.drive(drive_of(facts, disk)).power_on_seconds;
    if (bad.hours && on) {
      finding.evidence["hours_left"] = static_cast<double>(*bad.hours) - *on / 3600;
    }
    finding.change = "back up, then install the vendor's newer firmware";
    finding.risk = "a failed update can cost the drive";
    return finding;
  }
  return ok("firmware " + util::for_json(revision) + " is not known to be bad");
}

constexpr double kMebibyte = 1 << 20;
constexpr double kMaxMemoryShare = 1.0 / 16;   // of the host's, for one drive
constexpr double kMostlyRandom = 0.5;          // share of reads
constexpr double kReadingSecondsPerDay = 600;  // of all reads together

/// Seconds that reads take.
std::optional<double> reading_per_day(const Facts& facts, const std::string& name) {
  if (const DeviceEvidence* past = evidence_of(facts, name)) {
    return past->per_day(latency_total(*past, {model::Latency::read_total}).seconds);
  }
  return facts.measured.per_day(facts.measured.device(name).operation(Operation::read).total_seconds.sum);
}

Finding raise_limit(const Facts& facts, const std::string& name, double bytes, Finding finding) {
  const auto& memory = facts.settings.memory_bytes;
  if (!memory || bytes > kMaxMemoryShare * static_cast<double>(*memory)) {
    finding.why += memory ? "; no higher limit is given: it would be more than a sixteenth of the host's memory"
                          : "; no higher limit is given, as the host's memory is not known";
    return finding;
  }
  const double mebibytes = std::ceil(bytes / kMebibyte);
  finding.change =
      fmt::format("nvme.max_host_mem_size_mb={:.0f} on the kernel's command line, then restart the host", mebibytes);
  finding.undo = "remove it again, then restart the host";
  finding.risk = fmt::format("each drive that asks for it takes up to {:.0f} MiB of memory", mebibytes);
  const MeasuredOperation& reads = facts.measured.device(name).operation(Operation::read);
  return weigh(facts, std::move(finding),
               {{"random_share_of_reads", random_share(reads), kMostlyRandom},
                {"reading_seconds_per_day", reading_per_day(facts, name), kReadingSecondsPerDay}});
}

Finding host_memory(const Facts& facts, const DiskSettings& disk) {
  if (disk.controller_name.empty()) {
    return not_applicable("it is not an NVMe drive");
  }
  const MeasuredDrive& drive = facts.measured.drive(drive_of(facts, disk));
  const auto preferred = drive.host_memory_preferred_bytes;
  const auto minimum = drive.host_memory_minimum_bytes;
  if (!preferred || !minimum) {
    return unknown("whether it wants host memory",
                   facts.measured.answered ? "the drive was not read yet" : "no daemon answers");
  }
  if (*preferred <= 0) {
    return not_applicable("it requests no host memory");
  }
  const auto limit = facts.settings.files.number("sys/module/nvme/parameters/max_host_mem_size_mb");
  if (!limit) {
    return unknown("the memory that it gets", "max_host_mem_size_mb of the module nvme is not readable");
  }
  const double limit_bytes = static_cast<double>(*limit) * kMebibyte;
  const std::string asks =
      fmt::format("it asks for {:.0f} MiB of the host's memory, for its own use", *preferred / kMebibyte);
  const char* why =
      "drives without memory of their own mostly keep tables there: without it, random reads may wait for the flash "
      "twice";
  if (*minimum > limit_bytes) {
    Finding bad = info(
        fmt::format("{}, needs {:.0f} MiB and gets none, as the limit is {} MiB", asks, *minimum / kMebibyte, *limit),
        why);
    return raise_limit(facts, disk.device.name, std::max(*preferred, *minimum), std::move(bad));
  }
  if (disk.controller.text("hmb") == "0") {
    return info(asks + ", and has none", "the kernel found no room for it, or it was turned off");
  }
  if (*preferred > limit_bytes) {
    Finding bad = info(fmt::format("{}, and gets {} MiB", asks, *limit), why);
    return raise_limit(facts, disk.device.name, std::max(*preferred, *minimum), std::move(bad));
  }
  return ok(asks + ", and may have it");
}

Finding sata(const Facts& facts, const DiskSettings& disk) {
  if (disk.device.transport != "sata") {
    return not_applicable("it is not a SATA drive");
  }
  const auto depth = disk.files.number("device/queue_depth");
  if (!depth) {
    return unknown("its queue", "device/queue_depth is not readable");
  }
  constexpr std::uint64_t kMaxNcqDepth = 31;  // that Linux uses of 32
  // Without NCQ the controller itself has one tag, and the kernel refuses more (EINVAL).
  const auto max_depth = std::min(kMaxNcqDepth, disk.files.number("mq/0/nr_tags").value_or(kMaxNcqDepth));
  if (*depth == 1 && max_depth <= 1) {
    return ok("the controller takes one command at a time");
  }
  if (*depth == 1) {
    Finding bad = info("commands are sent one at a time", "the drive cannot work on several at once");
    change_file(bad, disk, "device/queue_depth", std::to_string(max_depth));
    bad.risk = "the kernel refuses if it knows the drive to be faulty";
    return weigh(facts, std::move(bad), {excess_evidence(facts, disk, {SpikeCause::queue, SpikeCause::saturation})});
  }
  const util::OutsideText power = disk.files.text("link_power_management_policy");
  if (!power.empty() && power != "max_performance") {
    return info("the link may sleep: " + util::for_json(power), "it wakes up at the beginning of each burst of I/Os");
  }
  return ok(fmt::format("{} commands at once", *depth));
}

constexpr double kSlowCommitSeconds = 0.002;  // drives with power-loss protection stay far below
constexpr double kCommitSecondsPerDay = 600;

struct Commits {
  std::optional<double> mean_seconds;
  std::optional<double> seconds_per_day;
};

Commits commits_of(const Facts& facts, const std::string& name) {
  if (const DeviceEvidence* past = evidence_of(facts, name)) {
    const LatencyTotal all = latency_total(*past, {model::Latency::commit});
    return {all.mean(), past->per_day(all.seconds)};
  }
  const Distribution& all = facts.measured.device(name).commit_seconds;
  return {mean(all), facts.measured.per_day(all.sum)};
}

Finding commits(const Facts& facts, const DiskSettings& disk) {
  const auto [seconds, per_day] = commits_of(facts, disk.device.name);
  if (!disk.device.write_back_cache) {
    if (seconds.value_or(0) < kSlowCommitSeconds || per_day.value_or(0) < kCommitSecondsPerDay) {
      return ok("its cache needs no flushes");
    }
    Finding finding =
        info("its cache needs no flushes, as it says, yet commits are slow",
             "they wait for something else, or the drive flushes after all: ask `ssdpulse why` during one");
    finding.evidence = {{"mean_commit_seconds", *seconds}, {"commit_seconds_per_day", *per_day}};
    return finding;
  }
  if (!seconds) {
    return unknown("what a commit costs", "none was measured");
  }
  Finding bad =
      info("each commit waits for the drive's cache", "its cache is volatile: a flush writes it to the flash");
  if (*seconds < kSlowCommitSeconds) {
    Finding finding = ok("commits are fast");
    finding.evidence = {{"mean_commit_seconds", *seconds}};
    return finding;
  }
  bad.change = "put what commits often on a drive with power-loss protection; never use barrier=0";
  bad.risk = "the price of such a drive";
  // A fast commit takes next to nothing: all their time is excess. weigh() knows the cost by this name.
  return weigh(facts, std::move(bad),
               {{"mean_commit_seconds", seconds, kSlowCommitSeconds},
                {"excess_seconds_per_day", per_day, kCommitSecondsPerDay}});
}

constexpr double kSlowedDown = 1.2;  // p99 during log reads, relative to the rest

Finding log_read_cost(const Facts& facts, const DiskSettings& disk) {
  const std::string drive = drive_of(facts, disk);
  if (drive.empty()) {
    return not_applicable("its log pages are not read");
  }
  const auto effect = facts.measured.drive(drive).log_read_latency_effect_ratio;
  if (!effect) {
    return unknown("what reading its log pages costs", "too few I/Os have been compared, or no daemon answers");
  }
  if (*effect < kSlowedDown) {
    Finding finding = ok("reading its log pages hardly slows it down");
    finding.evidence = {{"p99_during_log_reads_ratio", *effect}};
    return finding;
  }
  Finding bad = info("reading its log pages slows it down", "its I/Os wait while it answers");
  bad.change = "raise nvme.poll_interval in /etc/ssdpulse/ssdpulse.yaml; then systemctl reload ssdpulse";
  bad.undo = "set the former interval again";
  bad.risk = "wear and temperature are seen less often";
  return weigh(facts, std::move(bad), {{"p99_during_log_reads_ratio", effect, kSlowedDown}});
}

constexpr Rule kDriveRules[] = {
    {.id = "N1",
     .title = "Block size that an NVMe drive is formatted with",
     .limit = "the drive ranks another size higher, and queueing or saturation causes 60 s of waiting a day",
     .source = "NVM Express NVM Command Set, LBA format, relative performance",
     .by_history = true,
     .of_disk = block_size},
    {.id = "N4",
     .title = "Over-provisioning",
     .limit = "the lower bound of write amplification is at least 2, at a cost of 10 GB a day, with less than 7 % "
              "unpartitioned",
     .source = "RHEL 7, SSD guidelines; NetApp E-series, optimization capacity",
     .by_history = true,
     .of_disk = overprovisioning},
    {.id = "N7",
     .title = "PCI Express link",
     .limit = "it is narrower or slower than the drive's own, and saturation causes 60 s of waiting a day",
     .source = "Documentation/ABI/testing/sysfs-bus-pci, current_link_speed",
     .by_history = true,
     .of_disk = link},
    {.id = "N9",
     .title = "Heat",
     .limit = "heat causes 60 s of waiting a day",
     .source = "NVM Express Base, Host Controlled Thermal Management",
     .by_history = true,
     .of_disk = heat},
    {.id = "N10",
     .title = "Wear, spare and warnings",
     .limit = "an unrecovered error, its life is used up, or it warns of its temperature; danger: it warns of "
              "anything else, or its spare is too low",
     .source = "NVM Express Base, SMART / Health Information",
     .days = 0,
     .of_disk = wear},
    {.id = "N11",
     .title = "Firmware that is known to be bad",
     .limit = "danger where the table of known bad firmware says so",
     .source = "daemon/advice/known_bad_firmware.txt, with a source for each",
     .of_disk = firmware},
    {.id = "N12",
     .title = "Host memory for drives without their own",
     .limit = "it asks for more than it gets, and reads, half of them random, take 600 s a day",
     .source = "drivers/nvme/host/pci.c, nvme_setup_host_mem; NVM Express Base, Host Memory Buffer",
     .by_history = true,
     .of_disk = host_memory},
    {.id = "N13",
     .title = "Queue and link of SATA drives",
     .limit = "it is sent one command at a time, its controller takes more, and queueing or saturation causes 60 s of "
              "waiting a day",
     .source = "drivers/ata/libata-core.c",
     .by_history = true,
     .of_disk = sata},
    {.id = "N16",
     .title = "Cost of commits",
     .limit = "commits take 2 ms on average, and 600 s a day in total",
     .source = "PostgreSQL, Reliability",
     .by_history = true,
     .of_disk = commits},
    {.id = "F21",
     .title = "What reading log pages costs",
     .limit = "p99 of reads and writes while log pages are read is 20 % above the rest",
     .source = "ssdpulse, ssdpulse_nvme_log_read_latency_effect_ratio",
     .of_disk = log_read_cost},
};

}  // namespace

std::span<const Rule> drive_rules() { return kDriveRules; }

}  // namespace ssdpulse::advice
