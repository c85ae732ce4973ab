// SPDX-License-Identifier: Apache-2.0
// Is the I/O of every device measured, in time and completely?
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <string>
#include <utility>

#include "daemon/doctor/check.h"

namespace ssdpulse::doctor {
namespace {

Findings devices(const model::Snapshot& snapshot) {
  const bool none = std::all_of(snapshot.devices.begin(), snapshot.devices.end(),
                                [](const auto& entry) { return entry.unseen.has_value(); });
  Findings found;
  for (const model::DeviceSnapshot& entry : snapshot.devices) {
    if (entry.unseen) {
      auto one = finding(none ? model::Verdict::danger : model::Verdict::info, entry.device->name,
                         "none of its I/O is measured", std::string(model::unseen_text(entry.unseen->has_requests)));
      if (entry.unseen->kernel_ios) {
        one.evidence = {{"kernel_ios", static_cast<double>(*entry.unseen->kernel_ios)}};
      }
      found.push_back(std::move(one));
    }
  }
  if (!snapshot.devices.empty()) {
    return found;
  }
  return {finding(model::Verdict::danger, "", "no device is measured",
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
      found.push_back(finding(model::Verdict::info, source.controller,
                              fmt::format("source {} is not up yet", source.name), source.reason));
      continue;
    }
    reader_down = reader_down || (source.name == "nvme" && source.controller.empty());
    found.push_back(finding(model::Verdict::advise, source.controller, fmt::format("source {} is down", source.name),
                            source.reason.empty() ? "it does not answer" : source.reason, remedy(source)));
  }
  return found;
}

Findings statistics(const model::Snapshot& snapshot) {
  Findings found;
  for (const model::DeviceSnapshot& entry : snapshot.devices) {
    const std::string& name = entry.device->name;
    if (entry.device->iostats || entry.unseen) {
      continue;
    }
    found.push_back(not_stamped(name));
  }
  return found;
}

Findings latency_mode(const model::Snapshot& snapshot) {
  if (snapshot.latency_mode != "completion-only" || snapshot.own_cost.effort >= model::Effort::completions) {
    return {};  // what limits.cpu turned off is a finding of its own
  }
  auto one = finding(model::Verdict::info, "", "no device time, queue time, I/Os in flight and requeues",
                     "latency.mode is completion-only", "set latency.mode to full and restart the daemon");
  one.risk = "a second program runs for each I/O; see overhead.md";
  return {one};
}

Findings cpu_limit(const model::Snapshot& snapshot) {
  const model::OwnCostFigures& cost = snapshot.own_cost;
  if (cost.effort == model::Effort::everything) {
    return {};
  }
  auto one = finding(model::Verdict::advise, "", fmt::format("not measured: {}", model::what_is_off(cost.effort)),
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
      found.push_back(finding(model::Verdict::info, entry.device->name, "what was lost is not known",
                              "none of its I/O is measured"));
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
    auto one = finding(share > kMaxLostShare ? model::Verdict::advise : model::Verdict::info, entry.device->name,
                       "some I/Os were not measured", causes, "see the runbook SsdpulseLosingEvents");
    one.evidence = {{"lost_ios", static_cast<double>(lost)}, {"lost_ratio", share}};
    one.since = entry.io->since;
    found.push_back(std::move(one));
  }
  return found;
}

Findings lost_before_devices(const model::Snapshot& snapshot) {
  Findings found;
  if (const auto& left_out = snapshot.devices_left_out; !left_out.empty()) {
    constexpr std::size_t kNamed = 8;
    const auto first = std::span(left_out).first(std::min(kNamed, left_out.size()));
    std::string named = fmt::format("{}", fmt::join(first, ", "));
    named += left_out.size() > kNamed ? ", ..." : "";
    auto one =
        finding(model::Verdict::advise, "",
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
    auto one = finding(passing ? model::Verdict::info : model::Verdict::advise, "",
                       fmt::format("I/Os of devices without a place: {}", model::kHostLossNames[i]),
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
      auto one = finding(model::Verdict::info, "", fmt::format("the kernel skipped the program {}", program.name),
                         "it was needed while another one ran on the same CPU");
      one.evidence = {{"skipped_runs", static_cast<double>(*program.recursion_misses)}};
      found.push_back(std::move(one));
    }
  }
  if (found.empty() &&
      decided(snapshot.kernel_features, model::KernelFeature::skipped_runs, model::KernelDecision::not_reported)) {
    found.push_back(finding(model::Verdict::info, "", "how often the kernel skipped a program is not known",
                            "this kernel does not count it (Linux 5.12 does)"));
  }
  return found;
}

// One late second in a hundred only shows that the host was busy for a moment.
constexpr double kMaxMissedShare = 0.01;

Findings late_ticks(const model::Snapshot& snapshot) {
  constexpr std::uint64_t kMinTicks = 300;  // ticks; the start is busy
  const double ratio = snapshot.number < kMinTicks
                           ? 0
                           : static_cast<double>(snapshot.missed_ticks) / static_cast<double>(snapshot.number);
  if (ratio <= kMaxMissedShare) {
    return {};
  }
  auto one = finding(model::Verdict::info, "", "samples came late, so short spikes fall into longer intervals",
                     "the daemon did not get the CPU in time", "raise CPUWeight= of ssdpulse.service");
  one.evidence = {{"late_ticks", static_cast<double>(snapshot.missed_ticks)}, {"late_ratio", ratio}};
  return {one};
}

constexpr RunningCheck kIoChecks[] = {
    {"devices", "devices are measured", devices},
    {"sources", "every source answers", sources},
    {"iostats", "the kernel stamps the requests of every device", statistics},
    {"latency-mode", "queue and device time are separate", latency_mode},
    {"cpu-limit", "nothing is turned off to spare the host", cpu_limit},
    {"lost-ios", "no I/O was lost", lost_ios},
    {"device-places", "every device has a place", lost_before_devices},
    {"skipped-programs", "the kernel skipped none of our programs", skipped_programs},
    {"late-ticks", "every second was sampled in time", late_ticks},
};

}  // namespace

std::span<const RunningCheck> io_checks() { return kIoChecks; }

}  // namespace ssdpulse::doctor
