// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "daemon/doctor/checks.h"

namespace ssdpulse::doctor {
namespace {

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
      found.push_back(finding(model::Verdict::info, entry.device->name, "write lifetime hints do not reach the drive",
                              "this kernel drops them on the way"));
    } else if (entry.hint_path && hinted_bytes(entry) > 0 &&
               (entry.hint_path->kernel != model::HintReach::drive ||
                entry.hint_path->drive == model::DriveSeparation::none)) {
      found.push_back(
          finding(model::Verdict::info, entry.device->name,
                  fmt::format("programs send write lifetime hints: they {}, and the drive {}",
                              model::name(entry.hint_path->kernel, model::kHintReachWords),
                              model::name(entry.hint_path->drive, model::kDriveSeparationWords)),
                  fmt::format("data of different lifetimes is not separated: {} MB were written with a hint",
                              hinted_bytes(entry) / 1'000'000)));
    }
  }
  return found;
}

}  // namespace

const RunningCheck kWriteHints{"write-hints", "the kernel passes write hints on", write_hints};

}  // namespace ssdpulse::doctor
