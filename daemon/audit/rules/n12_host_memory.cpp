// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "daemon/audit/rules/rules.h"

namespace ssdpulse::audit {
namespace {

constexpr double kMebibyte = 1 << 20;
constexpr double kMaxShare = 1.0 / 16;  // of the host's memory, for one drive
constexpr double kRandom = 0.5;
constexpr double kReadingPerDay = 600;  // seconds, of all reads together

/// Seconds that reads take.
std::optional<double> reading_per_day(const Facts& facts, const std::string& name) {
  if (const DeviceEvidence* past = evidence_of(facts, name)) {
    return past->per_day(latency_total(*past, {model::Latency::read_total}).seconds);
  }
  return facts.measured.per_day(facts.measured.device(name).operation(Operation::read).total_seconds.sum);
}

Finding raise_limit(const Facts& facts, const std::string& name, double bytes, Finding finding) {
  const auto& memory = facts.settings.memory_bytes;
  if (!memory || bytes > kMaxShare * static_cast<double>(*memory)) {
    finding.why += "; no higher limit is given: that is more than a sixteenth of the host's memory, or it is not known";
    return finding;
  }
  const double mebibytes = std::ceil(bytes / kMebibyte);
  finding.change =
      fmt::format("nvme.max_host_mem_size_mb={:.0f} on the kernel's command line, then restart the host", mebibytes);
  finding.undo = "remove it again, then restart the host";
  finding.risk = fmt::format("each drive that asks for it takes up to {:.0f} MiB of memory", mebibytes);
  const MeasuredOperation& reads = facts.measured.device(name).operation(Operation::read);
  const auto sequential = ratio(reads.sequential_bytes, reads.bytes);
  return weigh(facts, std::move(finding),
               {{"random_share_of_reads", sequential ? std::optional(1 - *sequential) : std::nullopt, kRandom},
                {"reading_seconds_per_day", reading_per_day(facts, name), kReadingPerDay}});
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
  const double most = static_cast<double>(*limit) * kMebibyte;
  const std::string asks =
      fmt::format("it asks for {:.0f} MiB of the host's memory, for its own use", *preferred / kMebibyte);
  const char* why =
      "drives without memory of their own mostly keep tables there: without it, random reads may wait for the flash "
      "twice";
  if (*minimum > most) {
    Finding bad = info(
        fmt::format("{}, needs {:.0f} MiB and gets none, as the limit is {} MiB", asks, *minimum / kMebibyte, *limit),
        why);
    return raise_limit(facts, disk.device.name, std::max(*preferred, *minimum), std::move(bad));
  }
  if (disk.controller.text("hmb") == "0") {
    return info(asks + ", and has none", "the kernel found no room for it, or it was turned off");
  }
  if (*preferred > most) {
    Finding bad = info(fmt::format("{}, and gets {} MiB", asks, *limit), why);
    return raise_limit(facts, disk.device.name, std::max(*preferred, *minimum), std::move(bad));
  }
  return ok(asks + ", and may have it");
}

}  // namespace

const Rule kN12{.id = "N12",
                .title = "Host memory for drives without their own",
                .limit = "it asks for more than it gets, and reads, half of them random, take 600 s a day",
                .source = "drivers/nvme/host/pci.c, nvme_setup_host_mem; NVM Express Base, Host Memory Buffer",
                .by_history = true,
                .of_disk = host_memory};

}  // namespace ssdpulse::audit
