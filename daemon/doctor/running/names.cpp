// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "daemon/doctor/checks.h"

namespace ssdpulse::doctor {
namespace {

/// What others name is bounded; beyond that it is only counted.
Findings unnamed(const model::Snapshot& snapshot) {
  Findings found;
  for (const auto& [device, filesystems] : snapshot.unnamed_filesystems.by_device) {
    auto one =
        finding(model::Verdict::info, device,
                fmt::format("{} of its mounted file systems have no series or findings", filesystems),
                "more than 64 are mounted on it, or 256 on all devices; those that were mounted first have them");
    one.evidence = {{"filesystems_unnamed", static_cast<double>(filesystems)}};
    found.push_back(std::move(one));
  }
  if (snapshot.setting_changes_waiting > 0) {
    auto one = finding(model::Verdict::info, "", "changes of settings are recorded late",
                       "there are more than 128 of a device, or 1024 of all, in an hour; see `ssdpulse history`");
    one.evidence = {{"setting_changes_waiting", static_cast<double>(snapshot.setting_changes_waiting)}};
    found.push_back(std::move(one));
  }
  return found;
}

}  // namespace

const RunningCheck kNames{"names", "every file system and every change of a setting has its name", unnamed};

}  // namespace ssdpulse::doctor
