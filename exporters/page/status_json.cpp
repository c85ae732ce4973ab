// SPDX-License-Identifier: Apache-2.0
// How is the daemon itself, and what is not measured here, and why?
#include <fmt/format.h>

#include <numeric>

#include "daemon/live/words.h"
#include "daemon/model/version.h"
#include "exporters/page/json.h"

namespace ssdpulse::page {
namespace {

/// What is missing, why, and what would change it, if anything.
class Gaps {
 public:
  void add(std::string what, std::string why, std::string change = "") {
    gaps_.push_back({{"what", text(what)}, {"why", text(why)}, {"change", text(change)}});
  }
  Json take() { return std::move(gaps_); }

 private:
  Json gaps_ = Json::array();
};

void sources(const model::Snapshot& snapshot, Gaps& gaps) {
  if (snapshot.latency_mode == "completion-only") {
    gaps.add("Device and queue time, I/Os in flight, requeues", "latency.mode is completion-only",
             "Set latency.mode to full and restart the daemon.");
  }
  for (const model::SourceStatus& source : snapshot.sources) {
    if (!source.up) {
      gaps.add(fmt::format("{}{}{}", source.name, source.controller.empty() ? "" : " of ", source.controller),
               source.reason.empty() ? "it does not answer" : source.reason, "See the runbook SsdpulseSourceDown.");
    }
  }
}

void devices(const model::Snapshot& snapshot, Gaps& gaps) {
  for (const model::DeviceSnapshot& device : snapshot.devices) {
    const std::string& name = device.device->name;
    if (!device.device->iostats) {
      gaps.add("Latency of " + name, "the kernel stamps none of its requests: queue/iostats is 0",
               fmt::format("echo 1 > /sys/block/{}/queue/iostats", name));
    }
    if (device.device->transport != "nvme") {
      gaps.add("Health, wear and write amplification of " + name, "log pages are read of NVMe drives alone");
    }
    if (device.hint_path && device.hint_path->kernel == model::HintReach::dropped) {
      gaps.add("Write lifetime hints on " + name, "this kernel drops them on the way");
    }
    if (device.io) {
      const auto& losses = device.io->losses;
      const auto lost = std::accumulate(losses.begin(), losses.end(), std::uint64_t{0});
      if (lost > 0) {
        std::string causes;
        for (std::size_t i = 0; i < losses.size(); ++i) {
          causes +=
              losses[i] > 0 ? fmt::format("{}{}: {}", causes.empty() ? "" : ", ", model::kLossNames[i], losses[i]) : "";
        }
        gaps.add(fmt::format("{} I/Os of {}", lost, name), causes, "See the runbook SsdpulseLosingEvents.");
      }
    }
  }
}

void drives(const model::Snapshot& snapshot, Gaps& gaps) {
  for (const model::NvmeDrive& drive : snapshot.nvme_drives) {
    const std::string& name = drive.identity->controller;
    for (const auto& [page, reason] : drive.polling.refused_pages) {
      gaps.add(fmt::format("Log page {} of {}", page, name), reason);
    }
    const auto& waf = drive.write_amplification;
    if (waf.source.empty()) {
      gaps.add("Write amplification of " + name,
               waf.reason.empty() ? "the drive has not said what it has" : waf.reason);
    } else if (waf.ratios.empty()) {
      gaps.add("Write amplification of " + name,
               "too little was written so far to know it within 20 %; its counters are coarse");
    }
  }
}

void daemon(const model::Snapshot& snapshot, const live::RecentPast& past, Gaps& gaps) {
  if (!snapshot.history) {
    gaps.add("What was before the last 15 minutes", "history.directory is empty", "Name a directory and restart.");
  }
  for (const model::ProgramStats& program : snapshot.programs) {
    if (program.recursion_misses.value_or(0) > 0) {
      gaps.add(fmt::format("{} events of {}", *program.recursion_misses, program.name),
               "the kernel skipped the program");
    }
  }
  const auto reach = past.ring().reach();
  if (reach.last - reach.first + 1 < live::Ring::kFrames && past.since() && reach.first > 0 &&
      reach.begin - *past.since() > std::chrono::seconds(2)) {
    gaps.add("Seconds before " + live::clock_words(reach.begin),
             "so many busy devices do not leave memory for 15 minutes");
  }
}

/// What is wrong for good, not for a moment.
Json findings_of(const model::Snapshot& snapshot) {
  Json findings = Json::array();
  for (const model::FilesystemDiscards& filesystem : snapshot.filesystem_discards) {
    if (filesystem.mounted_with_discard && filesystem.bytes[model::index(model::DiscardTrigger::fstrim)] > 0) {
      findings.push_back(
          {{"what", text(filesystem.mountpoint + " is trimmed twice: it is mounted with discard, and fstrim "
                                                 "runs on it too.")},
           {"change", "Drop one of the two."},
           {"runbook", "SsdpulseOnlineDiscardAndFstrim"}});
    }
  }
  return findings;
}

}  // namespace

Json status_json(const model::Snapshot& snapshot, const live::RecentPast& past) {
  Gaps gaps;
  sources(snapshot, gaps);
  devices(snapshot, gaps);
  drives(snapshot, gaps);
  daemon(snapshot, past, gaps);
  Json answer = head_of(snapshot);
  answer["version"] = model::kVersion;
  answer["started_at"] = snapshot.process.start_time_seconds;
  answer["latency_mode"] = snapshot.latency_mode;
  answer["missed_ticks"] = snapshot.missed_ticks;
  answer["not_measured"] = gaps.take();
  answer["findings"] = findings_of(snapshot);
  answer["sources"] = Json::array();
  for (const model::SourceStatus& source : snapshot.sources) {
    answer["sources"].push_back({{"name", source.name},
                                 {"controller", source.controller.empty() ? Json() : Json(source.controller)},
                                 {"up", source.up},
                                 {"reason", text(source.reason)},
                                 {"errors", Json(source.errors)}});
  }
  answer["kernel_features"] = Json(snapshot.kernel_features);
  return answer;
}

}  // namespace ssdpulse::page
