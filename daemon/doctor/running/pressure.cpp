// SPDX-License-Identifier: Apache-2.0
#include "daemon/doctor/checks.h"

namespace ssdpulse::doctor {
namespace {

Findings pressure(const model::Snapshot& snapshot) {
  Findings found;
  const auto& signals = snapshot.host.signals;
  if (!signals) {
    return found;
  }
  if (!signals->pressure) {
    auto one =
        finding(model::Verdict::info, "", "how long tasks wait for I/O is not known",
                "the kernel keeps no pressure stall information, or it is off: what holds up I/O above the drives "
                "(a limit, a suspended volume) is seen late or not at all",
                "boot with psi=1 on the kernel's command line");
    one.source = "Documentation/accounting/psi.rst";
    found.push_back(std::move(one));
  }
  if (signals->cgroups_unified == false) {
    auto one =
        finding(model::Verdict::info, "", "which tenant waits for I/O is not known",
                "this host has cgroup v1, which keeps pressure for the whole host alone, and limits of io.max and "
                "io.latency do not exist",
                "boot with systemd.unified_cgroup_hierarchy=1");
    one.source = "Documentation/admin-guide/cgroup-v2.rst";
    found.push_back(std::move(one));
  }
  return found;
}

}  // namespace

const RunningCheck kPressure{"pressure", "waiting for I/O above the drives is seen", pressure};

}  // namespace ssdpulse::doctor
