// SPDX-License-Identifier: Apache-2.0
#include "daemon/doctor/checks.h"

namespace ssdpulse::doctor {
namespace {

Findings write_hints(const model::Snapshot& snapshot) {
  Findings found;
  for (const model::DeviceSnapshot& entry : snapshot.devices) {
    if (entry.hint_path && entry.hint_path->kernel == model::HintReach::dropped) {
      found.push_back(finding(model::Verdict::info, entry.device->name, "write lifetime hints do not reach the drive",
                              "this kernel drops them on the way"));
    }
  }
  return found;
}

}  // namespace

const RunningCheck kWriteHints{"write-hints", "the kernel passes write hints on", write_hints};

}  // namespace ssdpulse::doctor
