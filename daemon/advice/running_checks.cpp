// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "daemon/advice/doctor_check.h"
#include "daemon/base/figure_text.h"
#include "daemon/model/device_identity.h"
#include "daemon/model/sibling_latency.h"
#include "daemon/model/tenant_io.h"

namespace ssdpulse::advice {
namespace {

// What costs most comes first. Is the I/O of every device measured, in time and completely?

Findings devices(const model::Snapshot& snapshot) {
  const bool none = std::all_of(snapshot.devices.begin(), snapshot.devices.end(),
                                [](const auto& entry) { return entry.unseen.has_value(); });
  Findings found;
  for (const model::DeviceSnapshot& entry : snapshot.devices) {
    if (entry.unseen) {
      auto one = finding(none ? Verdict::danger : Verdict::info, entry.device->name,
                         entry.unseen->has_requests ? "none of its I/O is measured" : "it is not measured as a drive",
                         std::string(model::unseen_text(entry.unseen->has_requests)));
      if (entry.unseen->kernel_ios) {
        one.evidence = {{"kernel_ios", static_cast<double>(*entry.unseen->kernel_ios)}};
      }
      found.push_back(std::move(one));
    }
  }
  if (!snapshot.devices.empty()) {
    return found;
  }
  return {finding(Verdict::danger, "", "no device is measured",
                  "devices.include and devices.exclude leave none, or the host has none",
                  "ssdpulse devices  # shows each disk and why; change devices in the configuration and reload")};
}

std::string remedy(const model::SourceStatus& source) {
  if (source.name == "nvme") {
    return source.controller.empty()
               ? "start the reader's socket (ssdpulse-nvme.socket) where it is a service, else restart the daemon"
               : "journalctl -u ssdpulse -g nvme  # and see the runbook SsdpulseDriveNotAnswering";
  }
  return source.remedy.empty() ? "see the runbook SsdpulseSourceDown" : source.remedy;
}

Findings sources(const model::Snapshot& snapshot) {
  Findings found;
  bool reader_down = false;
  for (const model::SourceStatus& source : snapshot.sources) {
    if (source.up || (reader_down && !source.controller.empty())) {
      continue;  // without a reader no drive answers: reported once
    }
    if (source.starting) {
      found.push_back(finding(Verdict::info, source.controller, fmt::format("source {} is not up yet", source.name),
                              source.reason));
      continue;
    }
    reader_down = reader_down || (source.name == "nvme" && source.controller.empty());
    found.push_back(finding(Verdict::advise, source.controller, fmt::format("source {} is down", source.name),
                            source.reason.empty() ? "it does not answer" : source.reason, remedy(source)));
  }
  return found;
}

Findings statistics(const model::Snapshot& snapshot) {
  Findings found;
  for (const model::DeviceSnapshot& entry : snapshot.devices) {
    if (!entry.device->iostats && !entry.unseen) {
      found.push_back(not_stamped(entry.device->name));
    }
  }
  return found;
}

Findings latency_mode(const model::Snapshot& snapshot) {
  if (snapshot.latency_mode != "completion-only" || snapshot.own_cost.effort >= model::Effort::completions) {
    return {};  // what limits.cpu turned off is a finding of its own
  }
  auto one = finding(Verdict::info, "", "no device time, queue time, I/Os in flight and requeues",
                     "latency.mode is completion-only", "set latency.mode to full and restart the daemon");
  one.risk = "a second program runs for each I/O; see overhead.md";
  return {one};
}

Findings cpu_limit(const model::Snapshot& snapshot) {
  const model::OwnCostFigures& cost = snapshot.own_cost;
  if (cost.effort == model::Effort::everything) {
    return {};
  }
  auto one = finding(Verdict::advise, "", fmt::format("not measured: {}", model::what_is_off(cost.effort)),
                     fmt::format("measuring everything takes more than {:.3g} % of the host's CPUs", cost.limit * 100),
                     "see the runbook SsdpulseLimitingItself");
  one.evidence = {{"cpu_limit_ratio", cost.limit}};
  if (cost.ratio) {
    one.evidence["estimated_bpf_cpu_ratio"] = *cost.ratio;
  }
  return {one};
}

// Below this share, the unseen I/Os do not move a quantile of a minute.
constexpr double kMaxLostShare = 0.01;

Findings lost_ios(const model::Snapshot& snapshot) {
  Findings found;
  for (const model::DeviceSnapshot& entry : snapshot.devices) {
    if (entry.unseen) {
      found.push_back(
          finding(Verdict::info, entry.device->name, "what was lost is not known", "none of its I/O is measured"));
    }
    if (!entry.io) {
      continue;
    }
    const auto& losses = entry.io->losses;
    const auto lost = std::accumulate(losses.begin(), losses.end(), std::uint64_t{0});
    if (lost == 0) {
      continue;
    }
    std::uint64_t seen = 0;
    for (const model::OperationIo& operation : entry.io->operations) {
      seen += operation.completions;
    }
    const double share = static_cast<double>(lost) / static_cast<double>(seen + lost);
    std::string causes;
    for (std::size_t i = 0; i < losses.size(); ++i) {
      causes +=
          losses[i] > 0 ? fmt::format("{}{}: {}", causes.empty() ? "" : ", ", model::kLossNames[i], losses[i]) : "";
    }
    auto one = finding(share > kMaxLostShare ? Verdict::advise : Verdict::info, entry.device->name,
                       "some I/Os were not measured", causes, "see the runbook SsdpulseLosingEvents");
    one.evidence = {{"lost_ios", static_cast<double>(lost)}, {"lost_ratio", share}};
    one.since = entry.io->since;
    found.push_back(std::move(one));
  }
  return found;
}

Findings unplaced_ios(const model::Snapshot& snapshot) {
  Findings found;
  if (const auto& left_out = snapshot.devices_left_out; !left_out.empty()) {
    constexpr std::size_t kMaxNames = 8;
    const auto first = std::span(left_out).first(std::min(kMaxNames, left_out.size()));
    std::string named = fmt::format("{}", fmt::join(first, ", "));
    named += left_out.size() > kMaxNames ? ", ..." : "";
    auto one =
        finding(Verdict::advise, "",
                fmt::format("{} of {} devices are not measured: {}", left_out.size(), snapshot.devices.size(), named),
                "the tables in the kernel have room for the devices that were there when the daemon started, and "
                "a few more",
                "restart the daemon, or exclude some (devices.exclude)");
    one.evidence = {{"devices_left_out", static_cast<double>(left_out.size())}};
    found.push_back(std::move(one));
  }
  for (std::size_t i = 0; i < model::kHostLosses; ++i) {
    if (snapshot.losses[i] == 0 || i == model::index(model::HostLoss::freeze_events)) {
      continue;
    }
    const bool passing = i == model::index(model::HostLoss::device_pending);
    auto one =
        finding(passing ? Verdict::info : Verdict::advise, "",
                fmt::format("I/Os of devices without a slot in the kernel's tables: {}", model::kHostLossNames[i]),
                passing ? "a new device's first I/Os came before the daemon knew it"
                        : "more devices appeared than there was room for when the daemon started",
                passing ? "" : "restart the daemon");
    one.evidence = {{"lost_ios", static_cast<double>(snapshot.losses[i])}};
    found.push_back(std::move(one));
  }
  return found;
}

Findings skipped_programs(const model::Snapshot& snapshot) {
  Findings found;
  for (const model::ProgramStats& program : snapshot.programs) {
    if (program.recursion_misses.value_or(0) > 0) {
      auto one = finding(Verdict::info, "", fmt::format("the kernel skipped the program {}", program.name),
                         "it was needed while another one ran on the same CPU");
      one.evidence = {{"skipped_runs", static_cast<double>(*program.recursion_misses)}};
      found.push_back(std::move(one));
    }
  }
  if (found.empty() &&
      decided(snapshot.kernel_features, model::KernelFeature::skipped_runs, model::KernelDecision::not_reported)) {
    found.push_back(finding(Verdict::info, "", "how often the kernel skipped a program is not known",
                            "this kernel does not count it (Linux 5.12 does)"));
  }
  return found;
}

// One late second in a hundred only shows that the host was busy for a moment.
constexpr double kMaxMissedShare = 0.01;

Findings late_ticks(const model::Snapshot& snapshot) {
  constexpr std::uint64_t kMinTicks = 300;  // the start is busy
  const double ratio = snapshot.number < kMinTicks
                           ? 0
                           : static_cast<double>(snapshot.missed_ticks) / static_cast<double>(snapshot.number);
  if (ratio <= kMaxMissedShare) {
    return {};
  }
  auto one = finding(Verdict::info, "", "samples came late, so short spikes fall into longer intervals",
                     "the daemon did not get the CPU in time", "raise CPUWeight= of ssdpulse.service");
  one.evidence = {{"late_ticks", static_cast<double>(snapshot.missed_ticks)}, {"late_ratio", ratio}};
  return {one};
}

// What does this kernel report: who does I/O, who waits for it, and what is written?

Findings io_accounting(const model::Snapshot& snapshot) {
  if (!decided(snapshot.kernel_features, model::KernelFeature::io_accounting, model::KernelDecision::root_only)) {
    return {};
  }
  auto one = finding(
      Verdict::advise, "", "I/O cannot be told apart by unit",
      "this host accounts all I/O to the root of its cgroups: it is that of " + model::tenant_title(model::kRootTenant),
      "mkdir -p /etc/systemd/system.conf.d && printf '[Manager]\\nDefaultIOAccounting=yes\\n' "
      ">/etc/systemd/system.conf.d/io-accounting.conf && systemctl daemon-reexec");
  one.undo = "rm /etc/systemd/system.conf.d/io-accounting.conf && systemctl daemon-reexec";
  one.risk = "a few counters more for the kernel to keep, by unit";
  one.source = "systemd-system.conf(5)";
  return {one};
}

Findings pressure(const model::Snapshot& snapshot) {
  Findings found;
  const auto& signals = snapshot.host.signals;
  if (!signals) {
    return found;
  }
  if (!signals->pressure) {
    auto one =
        finding(Verdict::info, "", "how long tasks wait for I/O is not known",
                "the kernel keeps no pressure stall information, or it is off: what holds up I/O above the drives "
                "(a limit, a suspended volume) is seen late or not at all",
                "boot with psi=1 on the kernel's command line");
    one.source = "Documentation/accounting/psi.rst";
    found.push_back(std::move(one));
  }
  if (signals->cgroups_unified == false) {
    auto one =
        finding(Verdict::info, "", "which tenant waits for I/O is not known",
                "this host has cgroup v1, which keeps pressure for the whole host alone, and limits of io.max and "
                "io.latency do not exist",
                "boot with systemd.unified_cgroup_hierarchy=1");
    one.source = "Documentation/admin-guide/cgroup-v2.rst";
    found.push_back(std::move(one));
  }
  return found;
}

/// `consequence`: of not seeing what the kernel feature stands for.
Findings unless_hooked(const model::Snapshot& snapshot, model::KernelFeature feature, const char* consequence) {
  if (!decided(snapshot.kernel_features, feature, model::KernelDecision::not_hooked)) {
    return {};
  }
  return {finding(Verdict::info, "", consequence,
                  "the kernel's functions could not be hooked; the log of the daemon's start says why",
                  "boot a kernel with CONFIG_FUNCTION_TRACER and BTF")};
}

Findings discard_submitters(const model::Snapshot& snapshot) {
  return unless_hooked(snapshot, model::KernelFeature::discard_submitters,
                       "who submits discards is not known: all have trigger=other");
}

Findings volumes(const model::Snapshot& snapshot) {
  const auto is = [&](model::KernelDecision decision) {
    return model::decided(snapshot.kernel_features, model::KernelFeature::volume_times, decision);
  };
  if (snapshot.memberships.empty()) {
    return {};
  }
  if (is(model::KernelDecision::absent) || is(model::KernelDecision::not_hooked)) {
    return {finding(
        Verdict::info, "", "volumes (device mapper, md) are not measured", std::string(why_no_volumes(snapshot)),
        is(model::KernelDecision::absent) && snapshot.latency_mode != "completion-only" ? "systemctl restart ssdpulse"
                                                                                        : "")};
  }
  if (!snapshot.volumes_left_out.empty()) {
    auto one = finding(Verdict::advise, "", fmt::format("volumes not measured: {}", snapshot.volumes_left_out.size()),
                       "the tables in the kernel have room for twice the volumes that were there when the daemon "
                       "started, up to 2048",
                       "restart the daemon, or exclude some (devices.exclude)");
    one.evidence = {{"volumes_left_out", static_cast<double>(snapshot.volumes_left_out.size())}};
    return {std::move(one)};
  }
  return {};
}

Findings siblings(const model::Snapshot& snapshot) {
  if (!snapshot.siblings || snapshot.siblings->groups_left_out == 0) {
    return {};
  }
  const auto groups = snapshot.siblings->groups_left_out;
  auto one =
      finding(Verdict::info, "",
              util::format_count(groups, "group of like drives is", "groups of like drives are") + " not compared",
              "those that are compared have 512 members together, arrays first");
  one.evidence = {{"groups_left_out", static_cast<double>(groups)}};
  return {std::move(one)};
}

Findings freezes(const model::Snapshot& snapshot) {
  return unless_hooked(snapshot, model::KernelFeature::freezes, "a frozen file system is not noticed");
}

Findings write_classes(const model::Snapshot& snapshot) {
  if (!decided(snapshot.kernel_features, model::KernelFeature::write_class, model::KernelDecision::flags_and_pages)) {
    return {};
  }
  return {no_kernel_symbols(
      "classes of writes are guessed from flags and pages alone",
      "the kernel showed no addresses in /proc/kallsyms: kernel.kptr_restrict is 2, or CAP_SYSLOG is missing",
      "sysctl kernel.kptr_restrict=1 && systemctl restart ssdpulse")};
}

std::uint64_t hinted_bytes(const model::DeviceSnapshot& entry) {
  std::uint64_t sum = 0;
  if (entry.io) {
    for (std::size_t i = 0; i < model::kWriteHints; ++i) {
      const std::string_view hint = model::kWriteHintNames[i];
      const bool declares = hint != "not_set" && hint != "none" && hint != "unknown";
      sum += declares ? entry.io->writes.hint_bytes[i] : 0;
    }
  }
  return sum;
}

Findings write_hints(const model::Snapshot& snapshot) {
  Findings found;
  for (const model::DeviceSnapshot& entry : snapshot.devices) {
    if (entry.hint_path && entry.hint_path->kernel == model::HintReach::dropped) {
      found.push_back(finding(Verdict::info, entry.device->name, "write lifetime hints do not reach the drive",
                              "this kernel drops them on the way"));
    } else if (entry.hint_path && hinted_bytes(entry) > 0 &&
               (entry.hint_path->kernel != model::HintReach::drive ||
                entry.hint_path->drive == model::DriveSeparation::none)) {
      found.push_back(
          finding(Verdict::info, entry.device->name,
                  fmt::format("programs send write lifetime hints: they {}; the drive: {}",
                              model::name(entry.hint_path->kernel, model::kHintReachWords),
                              model::name(entry.hint_path->drive, model::kDriveSeparationWords)),
                  fmt::format("data of different lifetimes is not separated: {} MB were written with a hint",
                              hinted_bytes(entry) / 1'000'000)));
    }
  }
  return found;
}

// What do the drives report: log pages, health, write amplification?

Findings log_pages(const model::Snapshot& snapshot) {
  Findings found;
  for (const model::NvmeDrive& drive : snapshot.nvme_drives) {
    for (const auto& [page, reason] : drive.polling.refused_pages) {
      found.push_back(
          finding(Verdict::info, drive.identity->controller, fmt::format("log page {} is not read", page), reason));
    }
  }
  return found;
}

Findings write_amplification(const model::Snapshot& snapshot) {
  Findings found;
  for (const model::NvmeDrive& drive : snapshot.nvme_drives) {
    const auto& waf = drive.write_amplification;
    if (waf.source.empty()) {
      found.push_back(finding(Verdict::info, drive.identity->controller, "write amplification is not known",
                              waf.reason.empty() ? "the drive has not reported its write counters yet" : waf.reason));
    } else if (!waf.withheld.empty()) {
      found.push_back(finding(Verdict::info, drive.identity->controller, "write amplification is in doubt",
                              waf.withheld + ": that ratio is withheld"));
    } else if (waf.ratios.empty()) {
      found.push_back(finding(Verdict::info, drive.identity->controller, "write amplification is not known yet",
                              "too little has been written so far to know it within 20 %; its counters are coarse"));
    }
  }
  return found;
}

Findings health(const model::Snapshot& snapshot) {
  Findings found;
  for (const model::DeviceSnapshot& entry : snapshot.devices) {
    if (entry.device->transport != "nvme") {
      found.push_back(finding(Verdict::info, entry.device->name, "no health, wear and write amplification",
                              "log pages are read only from NVMe drives"));
    }
  }
  for (const model::NvmeDrive& drive : snapshot.nvme_drives) {
    if (!drive.polling.doubted.empty()) {
      const auto times = [&](const char* kind) {
        const auto count = drive.polling.failures.find(kind);
        return count == drive.polling.failures.end() ? std::uint64_t{0} : count->second;
      };
      found.push_back(finding(Verdict::info, drive.identity->controller, "some of its log pages were not accepted",
                              fmt::format("the last one: {}; impossible: {}, unconfirmed: {}", drive.polling.doubted,
                                          times("impossible"), times("unconfirmed")),
                              "update its firmware if this goes on"));
    }
  }
  return found;
}

// The drive's p99 near log reads over that of the rest. The poller itself backs off only above 2
// (nvme/polled_drive.cpp).
constexpr double kMaxReadEffect = 1.2;

Findings log_reads(const model::Snapshot& snapshot) {
  Findings found;
  for (const model::NvmeDrive& drive : snapshot.nvme_drives) {
    if (drive.polling.read_effect_ratio.value_or(0) > kMaxReadEffect) {
      auto one = finding(Verdict::info, drive.identity->controller, "latency includes the cost of reading log pages",
                         "this drive's reads and writes take longer while its log pages are read",
                         "raise nvme.poll_interval in the configuration and reload");
      one.evidence = {{"p99_during_log_reads_ratio", *drive.polling.read_effect_ratio},
                      {"interval_seconds", drive.polling.interval_seconds}};
      found.push_back(std::move(one));
    }
  }
  return found;
}

// Is what was measured kept, under names that hold?

Findings history(const model::Snapshot& snapshot) {
  if (snapshot.history) {
    return {};
  }
  auto one = finding(Verdict::info, "", "nothing older than the last 15 minutes is kept", "history.directory is empty",
                     "name a directory in history.directory and restart the daemon");
  one.risk = "about 1.6 kB a minute for each busy drive, at most history.size";
  return {one};
}

Findings lost_rows(const model::Snapshot& snapshot) {
  Findings found;
  if (snapshot.history) {
    for (const auto& [table, rows] : snapshot.history->rows_lost) {
      auto one = finding(Verdict::advise, "", fmt::format("rows of {} lost in the last 24 hours: {}", table, rows),
                         "the history's file was damaged, or another program changed it; what was readable is kept",
                         "look for errors of its drive in the kernel's log (journalctl -k)");
      one.evidence = {{"rows_lost", static_cast<double>(rows)}};
      found.push_back(std::move(one));
    }
  }
  return found;
}

Findings shared_identities(const model::Snapshot& snapshot) {
  std::vector<const model::Device*> devices;
  for (const model::DeviceSnapshot& entry : snapshot.devices) {
    devices.push_back(entry.device.get());
  }
  Findings found;
  for (const model::IdentityClash& clash : model::reported_clashes(devices, snapshot.memberships)) {
    auto one = finding(Verdict::info, "", model::clash_text(clash),
                       "nothing that they report would tell them apart after a reboot");
    one.evidence = {{"devices", static_cast<double>(clash.devices.size())}};
    found.push_back(std::move(one));
  }
  return found;
}

/// Names that others choose are bounded; beyond that they are only counted.
Findings unnamed(const model::Snapshot& snapshot) {
  Findings found;
  for (const auto& [device, filesystems] : snapshot.unnamed_filesystems.by_device) {
    auto one =
        finding(Verdict::info, device, fmt::format("mounted file systems without series or findings: {}", filesystems),
                "more than 64 are mounted on it, or 256 on all devices; those that were mounted first have them");
    one.evidence = {{"filesystems_unnamed", static_cast<double>(filesystems)}};
    found.push_back(std::move(one));
  }
  if (snapshot.setting_changes_waiting > 0) {
    auto one = finding(
        Verdict::info, "", "changes of settings are recorded late",
        "more than 128 settings of one device, or 1024 in all, changed within an hour; `ssdpulse history` shows them");
    one.evidence = {{"setting_changes_waiting", static_cast<double>(snapshot.setting_changes_waiting)}};
    found.push_back(std::move(one));
  }
  return found;
}

constexpr RunningCheck kRunningChecks[] = {
    {"devices", "devices are measured", devices},
    {"sources", "every source answers", sources},
    {"iostats", "the kernel stamps the requests of every device", statistics},
    {"latency-mode", "queue and device time are separate", latency_mode},
    {"cpu-limit", "nothing is turned off to spare the host", cpu_limit},
    {"lost-ios", "no I/O was lost", lost_ios},
    {"device-places", "every device has a slot in the kernel's tables", unplaced_ios},
    {"skipped-programs", "the kernel skipped none of our programs", skipped_programs},
    {"late-ticks", "every second was sampled in time", late_ticks},
    {"io-accounting", "I/O is accounted to units", io_accounting},
    {"pressure", "waiting for I/O above the drives is seen", pressure},
    {"discard-triggers", "who submits discards is seen", discard_submitters},
    {"volumes", "volumes are measured", volumes},
    {"siblings", "drives that ought to be alike are compared", siblings},
    {"freezes", "freezes of file systems are seen", freezes},
    {"write-classes", "journal, metadata and data are separate", write_classes},
    {"write-hints", "the kernel passes write hints on", write_hints},
    {"log-pages", "no drive refuses a log page", log_pages},
    {"write-amplification", "write amplification of every NVMe drive is known", write_amplification},
    {"health", "health and wear of every device are read", health},
    {"log-reads", "reading logs slows down no drive", log_reads},
    {"history", "a history is kept", history},
    {"history-rows", "no row of the history was found lost in the last 24 hours", lost_rows},
    {"identities", "each device can be distinguished from all others", shared_identities},
    {"names", "every file system and every change of a setting has its name", unnamed},
};

}  // namespace

std::string_view why_no_volumes(const model::Snapshot& snapshot) {
  const bool none = snapshot.memberships.empty() &&
                    std::all_of(snapshot.layers.begin(), snapshot.layers.end(), [](const auto& layer) {
                      return layer.kind == model::LayerKind::zram || layer.kind == model::LayerKind::ramdisk;
                    });
  if (none || snapshot.volume_figures) {
    return "";
  }
  if (!snapshot.bios.empty()) {
    return "the first figures come within some seconds";
  }
  const auto found = snapshot.kernel_features.find(model::KernelFeature::volume_times);
  const bool is_known = found != snapshot.kernel_features.end();
  const bool absent = is_known && found->second == model::KernelDecision::absent;
  if (is_known && found->second == model::KernelDecision::not_hooked) {
    return "the log of the daemon's start says why";
  }
  if (!absent && snapshot.own_cost.effort != model::Effort::everything) {
    return "limits.cpu: the programs in the kernel cost too much";
  }
  if (snapshot.latency_mode == "completion-only") {
    return "latency.mode is completion-only";
  }
  if (absent) {
    return "there was none when the daemon started, and it attaches programs only then";
  }
  return is_known ? "" : "volumes.enabled is false";
}

std::span<const RunningCheck> running_checks() { return kRunningChecks; }

}  // namespace ssdpulse::advice
