// SPDX-License-Identifier: Apache-2.0
#include "daemon/doctor/checks.h"

namespace ssdpulse::doctor {
namespace {

Findings lockdown(const Start& start) {
  if (start.host.lockdown != "confidentiality") {
    return {};
  }
  auto one = finding(model::Verdict::danger, "", "the kernel is locked down: nothing can be measured",
                     "with lockdown=confidentiality no program may read the kernel's memory",
                     "boot with lockdown=integrity, or without");
  one.risk = "programs of root may read what the kernel keeps";
  one.source = "kernel_lockdown(7)";
  return {one};
}

}  // namespace

const HostCheck kLockdown{"lockdown", "the kernel is not locked down", lockdown};

}  // namespace ssdpulse::doctor
