// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "daemon/doctor/checks.h"

namespace ssdpulse::doctor {
namespace {

std::string way_out(const model::SourceStatus& source) {
  if (source.name == "nvme") {
    return source.controller.empty()
               ? "start the reader's socket (ssdpulse-nvme.socket) where it is a service, else restart the daemon"
               : "journalctl -u ssdpulse -g nvme  # and see the runbook SsdpulseDriveNotAnswering";
  }
  return source.way_out.empty() ? "see the runbook SsdpulseSourceDown" : source.way_out;
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
                            source.reason.empty() ? "it does not answer" : source.reason, way_out(source)));
  }
  return found;
}

}  // namespace

const RunningCheck kSources{"sources", "every source answers", sources};

}  // namespace ssdpulse::doctor
