// SPDX-License-Identifier: Apache-2.0
#include "daemon/doctor/checks.h"
#include "daemon/model/tenant_title.h"
#include "daemon/model/tenants.h"

namespace ssdpulse::doctor {
namespace {

Findings io_accounting(const model::Snapshot& snapshot) {
  if (!decided(snapshot.kernel_features, model::KernelFeature::io_accounting, model::KernelDecision::root_only)) {
    return {};
  }
  auto one = finding(
      model::Verdict::advise, "", "which unit does the I/O is not known",
      "this host accounts all I/O to the root of its cgroups: it is that of " + model::tenant_title(model::kRootTenant),
      "mkdir -p /etc/systemd/system.conf.d && printf '[Manager]\\nDefaultIOAccounting=yes\\n' "
      ">/etc/systemd/system.conf.d/io-accounting.conf && systemctl daemon-reexec");
  one.undo = "rm /etc/systemd/system.conf.d/io-accounting.conf && systemctl daemon-reexec";
  one.risk = "a few counters more for the kernel to keep, by unit";
  one.source = "systemd-system.conf(5)";
  return {one};
}

}  // namespace

const RunningCheck kIoAccounting{"io-accounting", "I/O is accounted to units", io_accounting};

}  // namespace ssdpulse::doctor
