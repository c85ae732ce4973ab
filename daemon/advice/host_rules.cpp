// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "daemon/advice/rule.h"
#include "daemon/advice/virtual_machines.h"
#include "daemon/base/number_text.h"

namespace ssdpulse::advice {
namespace {

// A drive that writes 1 GB/s needs more than four seconds for this, during which everything else waits.
constexpr double kLargeDirtyLimit = 4.0 * (1U << 30U);  // bytes
constexpr double kWritebackShare = 0.5;                 // of the bytes written
constexpr std::uint64_t kAdvisedLimit = 1U << 30U;
constexpr std::uint64_t kAdvisedBackground = 256U << 20U;

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
  bad.change = fmt::format("sysctl vm.dirty_background_bytes={} vm.dirty_bytes={}", kAdvisedBackground, kAdvisedLimit);
  bad.persistent = fmt::format(
      "printf 'vm.dirty_background_bytes=%s\\nvm.dirty_bytes=%s\\n' {} {} > /etc/sysctl.d/60-ssdpulse-dirty.conf",
      kAdvisedBackground, kAdvisedLimit);
  bad.undo = (*background_bytes > 0 ? fmt::format("sysctl vm.dirty_background_bytes={}", *background_bytes)
                                    : fmt::format("sysctl vm.dirty_background_ratio={}", *background)) +
             (*bytes > 0 ? fmt::format(" vm.dirty_bytes={}", *bytes) : fmt::format(" vm.dirty_ratio={}", *percent)) +
             "; rm -f /etc/sysctl.d/60-ssdpulse-dirty.conf";
  bad.risk = "large copies through the page cache become slower";
  std::optional<double> excess;
  std::optional<double> writeback;
  std::optional<double> written;
  for (const DiskSettings& disk : facts.settings.disks) {
    const std::string& name = disk.device.name;
    add_figure(excess, excess_per_day(facts, name, {SpikeCause::queue, SpikeCause::saturation}));
    add_figure(writeback, facts.measured.device(name).written_bytes_by(model::WriteClass::writeback));
    add_figure(written, facts.measured.device(name).all_written_bytes());
  }
  return weigh(facts, std::move(bad),
               {{"writeback_share", ratio(writeback, written), kWritebackShare},
                {"excess_seconds_per_day", excess, kExcessLimit}});
}

constexpr double kSwapBytesPerDay = 1e9;

Finding swap(const Facts& facts, const DiskSettings& disk) {
  const auto& swaps = facts.settings.swaps;
  if (std::none_of(swaps.begin(), swaps.end(),
                   [&](const model::Swap& swap) { return swap.disks.contains(disk.device.name); })) {
    const auto lost = std::find_if(swaps.begin(), swaps.end(), [](const model::Swap& swap) { return !swap.known; });
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

/// Limits in the top two levels, and those that the daemon sees on whoever has sent I/O; empty: none is known.
std::string limiting_groups(const Facts& facts) {
  std::string groups = facts.settings.files.text("sys/fs/cgroup/io.cost.qos").contains("enable=1") ? "io.cost.qos" : "";
  for (const auto& [file, limit] : facts.settings.cgroup_limits) {
    groups += (groups.empty() ? "" : " ") + util::for_json(file);
  }
  return groups.empty() && facts.measured.tenant_limits ? "some below the top two levels" : util::for_json(groups, 200);
}

Finding cgroup_limits(const Facts& facts) {
  const auto waited = facts.measured.per_day(facts.measured.cgroup_limit_seconds);
  const std::string groups = limiting_groups(facts);
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

constexpr double kThreadIosPerDay = 10e6;  // a wake-up of 6 us for each of them is a minute a day

/// Of all programs, as a thread sends them: without io_uring and libaio, and past the page cache.
std::optional<double> thread_ios_per_day(const Facts& facts) {
  std::optional<double> ios;
  for (const DiskSettings& disk : facts.settings.disks) {
    for (const model::IoPath path : {model::IoPath::sync, model::IoPath::direct}) {
      add_figure(ios, facts.measured.per_day(facts.measured.device(disk.device.name).path_ios[index(path)]));
    }
  }
  return ios;
}

Finding virtual_machines(const Facts& facts) {
  if (facts.settings.virtual_machines.empty()) {
    return not_applicable("no QEMU virtual machine is running here");
  }
  std::size_t disks = 0;
  std::size_t unread = 0;
  std::vector<util::OutsideText> by_threads;
  for (const util::OutsideText& line : facts.settings.virtual_machines) {
    const QemuDisks machine = disks_of_qemu(line.raw());
    unread += line.empty() || !machine.whole ? 1 : 0;
    disks += machine.disks.size();
    for (const QemuDisk& disk : machine.disks) {
      if (disk.threads) {
        by_threads.push_back(disk.file);
      }
    }
  }
  const std::string partly =
      unread == 0 ? "" : fmt::format("; {} not readable as a whole", util::count_text(unread, "command line"));
  if (by_threads.empty()) {
    return unread > 0 ? unknown("how virtual machines reach their disks", partly.substr(2))
           : disks > 0
               ? ok(fmt::format("virtual machines use no threads for the I/O of {}", util::count_text(disks, "disk")))
               : not_applicable("no QEMU has a disk in a file or on a block device of this host");
  }
  constexpr std::size_t kShown = 3;
  std::string names;
  for (std::size_t i = 0; i < std::min(kShown, by_threads.size()); ++i) {
    names += (names.empty() ? "" : ", ") + util::for_json(by_threads[i], 80);
  }
  names += by_threads.size() > kShown ? fmt::format(" and {} more", by_threads.size() - kShown) : "";
  Finding bad =
      info(fmt::format("virtual machines use threads for the I/O of {} of {}: {}", by_threads.size(),
                       util::count_text(disks, "disk"), names),
           "a thread is woken up for each I/O, which on fast drives costs more than the drive's own time" + partly);
  bad.change =
      "aio=io_uring (libvirt: io='io_uring' in the disk's <driver>), and an iothread for each disk; then "
      "restart the virtual machine";
  bad.undo = "the former options, and another restart";
  bad.risk = "the virtual machine is down meanwhile; io_uring needs QEMU 5.0";
  return weigh(facts, std::move(bad), {{"thread_ios_per_day", thread_ios_per_day(facts), kThreadIosPerDay}});
}

constexpr Rule kHostRules[] = {
    {.id = "F13",
     .title = "Limits on data waiting to be written",
     .limit = "more than 4 GiB may wait, half of the writes are writeback, and queueing or saturation causes 60 s "
              "of waiting a day",
     .source = "tuned, profile postgresql; Documentation/admin-guide/sysctl/vm.rst",
     .by_history = true,
     .of_host = dirty_limits},
    {.id = "F14",
     .title = "Swap on a measured disk",
     .limit = "1 GB a day is written to it",
     .source = "MongoDB production notes, swappiness",
     .of_disk = swap},
    {.id = "F15",
     .title = "I/O limits of control groups",
     .limit = "somebody waits at a limit for 60 s a day",
     .source = "Documentation/admin-guide/cgroup-v2.rst, io; ssdpulse, ssdpulse_host_wait_seconds_total",
     .of_host = cgroup_limits},
    {.id = "F18",
     .title = "How virtual machines reach their disks",
     .limit = "one uses threads, and 10 million I/Os a day are sent as threads send them",
     .source = "qemu(1), -drive aio=; QMP, BlockdevOptionsFile",
     .of_host = virtual_machines},
};

}  // namespace

std::span<const Rule> host_rules() { return kHostRules; }

}  // namespace ssdpulse::advice
