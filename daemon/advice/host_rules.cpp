// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "daemon/advice/audit_rules.h"
#include "daemon/base/number_text.h"

namespace ssdpulse::advice {
namespace {

// A drive that writes 1 GB/s needs more than four seconds for this, during which everything else waits.
constexpr double kLargeDirtyLimit = 4.0 * (1U << 30U);  // bytes
constexpr double kWriteback = 0.5;                      // of the bytes written
constexpr std::uint64_t kLimit = 1U << 30U;
constexpr std::uint64_t kBackground = 256U << 20U;

Finding dirty_limits(const Facts& facts) {
  const model::Attributes& files = facts.settings.files;
  const auto bytes = files.number("proc/sys/vm/dirty_bytes");
  const auto percent = files.number("proc/sys/vm/dirty_ratio");
  const auto background = files.number("proc/sys/vm/dirty_background_ratio");
  const auto background_bytes = files.number("proc/sys/vm/dirty_background_bytes");
  if (!bytes || !percent || !background || !background_bytes || !facts.settings.memory_bytes) {
    return unknown("how much may wait to be written", "vm.dirty_ratio is not readable");
  }
  const double limit = *bytes > 0
                           ? static_cast<double>(*bytes)
                           : static_cast<double>(*facts.settings.memory_bytes) * static_cast<double>(*percent) / 100;
  const std::string found = fmt::format("up to {} GiB may wait to be written", util::number_text(limit / (1U << 30U)));
  if (limit <= kLargeDirtyLimit) {
    return ok(found);
  }
  Finding bad = info(found, "when it is all written at once, at a sync or a checkpoint, everything else waits");
  bad.change = fmt::format("sysctl vm.dirty_background_bytes={} vm.dirty_bytes={}", kBackground, kLimit);
  bad.persistent = fmt::format(
      "printf 'vm.dirty_background_bytes=%s\\nvm.dirty_bytes=%s\\n' {} {} > /etc/sysctl.d/60-ssdpulse-dirty.conf",
      kBackground, kLimit);
  bad.undo = (*background_bytes > 0 ? fmt::format("sysctl vm.dirty_background_bytes={}", *background_bytes)
                                    : fmt::format("sysctl vm.dirty_background_ratio={}", *background)) +
             (*bytes > 0 ? fmt::format(" vm.dirty_bytes={}", *bytes) : fmt::format(" vm.dirty_ratio={}", *percent)) +
             "; rm -f /etc/sysctl.d/60-ssdpulse-dirty.conf";
  bad.risk = "large copies through the page cache become slower";
  std::optional<double> excess;
  std::optional<double> writeback;
  std::optional<double> all;
  for (const DiskSettings& disk : facts.settings.disks) {
    const std::string& name = disk.device.name;
    add_figure(excess, excess_per_day(facts, name, {SpikeCause::queue, SpikeCause::saturation}));
    add_figure(writeback, facts.measured.device(name).written_bytes_by(model::WriteClass::writeback));
    add_figure(all, facts.measured.device(name).all_written_bytes());
  }
  return weigh(
      facts, std::move(bad),
      {{"writeback_share", ratio(writeback, all), kWriteback}, {"excess_seconds_per_day", excess, kExcessLimit}});
}

}  // namespace

const Rule kF13{
    .id = "F13",
    .title = "Limits on data waiting to be written",
    .limit =
        "more than 4 GiB may wait, half of the writes are writeback, and queueing or saturation causes 60 s "
        "of waiting a day",
    .source = "tuned, profile postgresql; Documentation/admin-guide/sysctl/vm.rst",
    .by_history = true,
    .of_host = dirty_limits};

namespace {

constexpr double kSwapBytesPerDay = 1e9;

Finding swap(const Facts& facts, const DiskSettings& disk) {
  const auto& swaps = facts.settings.swaps;
  if (std::none_of(swaps.begin(), swaps.end(),
                   [&](const auto& one) { return one.disks.count(disk.device.name) > 0; })) {
    const auto lost = std::find_if(swaps.begin(), swaps.end(), [](const auto& one) { return !one.known; });
    return lost == swaps.end()
               ? not_applicable("it is not used for swap")
               : unknown("whether it is used for swap", "what " + util::for_json(lost->name) + " lies on is not known");
  }
  const auto swappiness = facts.settings.files.number("proc/sys/vm/swappiness");
  Finding bad = info("the host swaps to it", "reads from swap wait behind everything else");
  if (swappiness && *swappiness > 1) {
    bad.change = "sysctl vm.swappiness=1";
    bad.persistent = "echo vm.swappiness=1 > /etc/sysctl.d/60-ssdpulse-swap.conf";
    bad.undo = fmt::format("sysctl vm.swappiness={}; rm -f /etc/sysctl.d/60-ssdpulse-swap.conf", *swappiness);
    bad.risk = "programs are killed earlier when memory runs out";
  } else {
    bad.change = "add memory, or swap to zram";
    bad.risk = "zram takes memory itself";
  }
  return weigh(
      facts, std::move(bad),
      {{"swap_bytes_per_day",
        facts.measured.per_day(facts.measured.device(disk.device.name).written_bytes_by(model::WriteClass::swap)),
        kSwapBytesPerDay}});
}

}  // namespace

const Rule kF14{.id = "F14",
                .title = "Swap on a measured disk",
                .limit = "1 GB a day is written to it",
                .source = "MongoDB production notes, swappiness",
                .of_disk = swap};

namespace {

/// Limits in the top two levels, and those that the daemon sees on whoever has sent I/O; empty: none is known.
std::string limited(const Facts& facts) {
  std::string groups = facts.settings.files.text("sys/fs/cgroup/io.cost.qos").contains("enable=1") ? "io.cost.qos" : "";
  for (const auto& [file, limit] : facts.settings.cgroup_limits) {
    groups += (groups.empty() ? "" : " ") + util::for_json(file);
  }
  return groups.empty() && facts.measured.tenant_limits ? "some below the top two levels" : util::for_json(groups, 200);
}

Finding cgroup_limits(const Facts& facts) {
  const auto waited = facts.measured.per_day(facts.measured.cgroup_limit_seconds);
  const std::string groups = limited(facts);
  if (groups.empty() && waited.value_or(0) == 0) {
    return ok("no control group is known to limit I/O");
  }
  Finding bad = info("control groups limit I/O",
                     "their I/Os wait before they reach a drive" + (groups.empty() ? "" : ": " + groups));
  bad.change = "raise the limits of those that wait (`ssdpulse why` names them), or accept this finding";
  bad.undo = "the former limits";
  bad.risk = "others on the same drive wait longer";
  return weigh(facts, std::move(bad), {{"excess_seconds_per_day", waited, kExcessLimit}});
}

}  // namespace

const Rule kF15{.id = "F15",
                .title = "I/O limits of control groups",
                .limit = "somebody waits at a limit for 60 s a day",
                .source = "Documentation/admin-guide/cgroup-v2.rst, io; ssdpulse, ssdpulse_host_wait_seconds_total",
                .of_host = cgroup_limits};

namespace {

constexpr double kHarm = 1.2;  // p99 during log reads, relative to the rest

Finding ourselves(const Facts& facts, const DiskSettings& disk) {
  const std::string drive = drive_of(facts, disk);
  if (drive.empty()) {
    return not_applicable("no log pages are read of it");
  }
  const auto effect = facts.measured.drive(drive).log_read_latency_effect_ratio;
  if (!effect) {
    return unknown("what reading its log pages costs", "too few I/Os have been compared, or no daemon answers");
  }
  if (*effect < kHarm) {
    Finding finding = ok("reading its log pages costs nothing");
    finding.evidence = {{"p99_during_log_reads_ratio", *effect}};
    return finding;
  }
  Finding bad = info("reading its log pages slows it down", "the drive stops for them");
  bad.change = "raise nvme.poll_interval in /etc/ssdpulse/ssdpulse.yaml; then systemctl reload ssdpulse";
  bad.undo = "the former interval";
  bad.risk = "wear and temperature are seen less often";
  return weigh(facts, std::move(bad), {{"p99_during_log_reads_ratio", effect, kHarm}});
}

}  // namespace

const Rule kF21{.id = "F21",
                .title = "What reading log pages costs",
                .limit = "p99 of reads and writes while log pages are read is 20 % above the rest",
                .source = "ssdpulse, ssdpulse_nvme_log_read_latency_effect_ratio",
                .of_disk = ourselves};

}  // namespace ssdpulse::advice
