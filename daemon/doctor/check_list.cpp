// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "daemon/doctor/check.h"
#include "daemon/model/device_title.h"

namespace ssdpulse::doctor {
namespace {

template <typename Facts>
void examine_all(const Facts& facts, std::span<const Check<Facts>> checks, Findings& all) {
  for (const Check<Facts>& check : checks) {
    Findings found = check.run(facts);
    if (found.empty()) {
      found.push_back(finding(model::Verdict::ok, "", std::string(check.ok_text), ""));
    }
    for (model::Finding& one : found) {
      one.id = check.id;
      all.push_back(std::move(one));
    }
  }
}

}  // namespace

model::Finding not_stamped(const std::string& device) {
  auto one = finding(model::Verdict::advise, device, "no total and queue latency, and so no spikes",
                     "the kernel stamps none of its requests: queue/iostats is 0",
                     fmt::format("echo 1 > /sys/block/{}/queue/iostats", device));
  one.undo = fmt::format("echo 0 > /sys/block/{}/queue/iostats", device);
  one.risk = "the kernel reads its clock twice for each I/O, as it does by default";
  one.source = "Documentation/ABI/stable/sysfs-block";
  return one;
}

model::Finding no_kernel_symbols(std::string found, std::string why, std::string change) {
  auto one = finding(model::Verdict::advise, "", std::move(found), std::move(why), std::move(change));
  one.persistent = "echo kernel.kptr_restrict=1 > /etc/sysctl.d/60-ssdpulse.conf";
  one.undo = "sysctl kernel.kptr_restrict=2; rm -f /etc/sysctl.d/60-ssdpulse.conf";
  one.risk = "programs with CAP_SYSLOG see where the kernel's functions are";
  one.source = "Documentation/admin-guide/sysctl/kernel.rst, kptr_restrict";
  return one;
}

// What costs most comes first: no device, no source, then single things.
Findings examine(const model::Snapshot& snapshot) {
  Findings all;
  for (const auto checks : {io_checks(), kernel_checks(), drive_checks(), record_checks()}) {
    examine_all(snapshot, checks, all);
  }
  for (model::Finding& one : all) {
    if (std::any_of(snapshot.devices.begin(), snapshot.devices.end(),
                    [&](const model::DeviceSnapshot& device) { return one.device == device.device->name; })) {
      one.title = model::device_title(snapshot, one.device.raw()).full;
    }
  }
  return all;
}

Findings examine(const Start& start) {
  Findings all;
  examine_all(start, host_checks(), all);
  return all;
}

bool has_gaps(const Findings& findings) {
  return std::any_of(findings.begin(), findings.end(), [](const model::Finding& one) {
    return one.verdict == model::Verdict::danger || one.verdict == model::Verdict::advise ||
           one.verdict == model::Verdict::unknown;
  });
}

}  // namespace ssdpulse::doctor
