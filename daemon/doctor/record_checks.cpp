// SPDX-License-Identifier: Apache-2.0
// Is what was measured kept, under names that hold?
#include <fmt/format.h>

#include "daemon/doctor/check.h"
#include "daemon/model/device_identity.h"

namespace ssdpulse::doctor {
namespace {

Findings history(const model::Snapshot& snapshot) {
  if (snapshot.history) {
    return {};
  }
  auto one = finding(model::Verdict::info, "", "nothing older than the last 15 minutes is kept",
                     "history.directory is empty", "name a directory in history.directory and restart the daemon");
  one.risk = "about 1.6 kB a minute for each busy drive, at most history.size";
  return {one};
}

Findings lost_rows(const model::Snapshot& snapshot) {
  Findings found;
  if (snapshot.history) {
    for (const auto& [table, rows] : snapshot.history->rows_lost) {
      auto one =
          finding(model::Verdict::advise, "", fmt::format("{} rows of {} were lost in the last 24 hours", rows, table),
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
    auto one = finding(model::Verdict::info, "", model::clash_text(clash),
                       "nothing that they report would tell them apart after a reboot");
    one.evidence = {{"devices", static_cast<double>(clash.devices.size())}};
    found.push_back(std::move(one));
  }
  return found;
}

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

constexpr RunningCheck kRecordChecks[] = {
    {"history", "a history is kept", history},
    {"history-rows", "no row of the history was found lost in the last 24 hours", lost_rows},
    {"identities", "each device can be distinguished from all others", shared_identities},
    {"names", "every file system and every change of a setting has its name", unnamed},
};

}  // namespace

std::span<const RunningCheck> record_checks() { return kRecordChecks; }

}  // namespace ssdpulse::doctor
