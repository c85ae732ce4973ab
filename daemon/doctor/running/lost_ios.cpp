// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <numeric>

#include "daemon/doctor/checks.h"

namespace ssdpulse::doctor {
namespace {

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

}  // namespace

const RunningCheck kLostIos{"lost-ios", "no I/O was lost", lost_ios};

}  // namespace ssdpulse::doctor
