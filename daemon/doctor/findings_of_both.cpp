// SPDX-License-Identifier: Apache-2.0
#include "daemon/doctor/findings_of_both.h"

#include <fmt/format.h>

#include <utility>

namespace ssdpulse::doctor {

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

}  // namespace ssdpulse::doctor
