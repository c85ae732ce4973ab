// SPDX-License-Identifier: Apache-2.0
// In which order are the findings shown? What costs most comes first: no device, no source, then single things.
#include <algorithm>
#include <array>

#include "daemon/doctor/checks.h"
#include "daemon/model/device_title.h"

namespace ssdpulse::doctor {
namespace {

template <typename Facts, typename List>
Findings examine_all(const Facts& facts, const List& checks) {
  Findings all;
  for (const auto& check : checks) {
    Findings found = check.run(facts);
    if (found.empty()) {
      found.push_back(finding(model::Verdict::ok, "", std::string(check.ok_text), ""));
    }
    for (model::Finding& one : found) {
      one.id = check.id;
      all.push_back(std::move(one));
    }
  }
  return all;
}

}  // namespace

Findings examine(const model::Snapshot& snapshot) {
  static const std::array checks{
      kDevices,           kSources,         kStatistics,       kLatencyMode,  kCpuLimit,           kLostIos,
      kLostBeforeDevices, kSkippedPrograms, kLateTicks,        kIoAccounting, kPressure,           kDiscardSubmitters,
      kFreezes,           kWriteClasses,    kWriteHints,       kLogPages,     kWriteAmplification, kHealth,
      kLogReads,          kHistory,         kSharedIdentities, kNames,
  };
  Findings all = examine_all(snapshot, checks);
  for (model::Finding& one : all) {
    if (std::any_of(snapshot.devices.begin(), snapshot.devices.end(),
                    [&](const model::DeviceSnapshot& device) { return one.device == device.device->name; })) {
      one.title = model::device_title(snapshot, one.device.raw()).full;
    }
  }
  return all;
}

Findings examine(const Start& start) {
  static const std::array checks{
      kKernelVersion, kKernelTypes, kPrivileges, kLockdown,     kBpfCompiler,      kLockedMemory,      kKernelSymbols,
      kPerfEvents,    kPort,        kDriveNodes, kReaderSocket, kHistoryDirectory, kStatisticsOfDisks,
  };
  return examine_all(start, checks);
}

bool has_gaps(const Findings& findings) {
  return std::any_of(findings.begin(), findings.end(), [](const model::Finding& one) {
    return one.verdict == model::Verdict::danger || one.verdict == model::Verdict::advise ||
           one.verdict == model::Verdict::unknown;
  });
}

}  // namespace ssdpulse::doctor
