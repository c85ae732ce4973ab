// SPDX-License-Identifier: Apache-2.0
#include <linux/capability.h>

#include <cstdio>

#include "daemon/doctor/checks.h"

namespace ssdpulse::doctor {
namespace {

constexpr std::uint64_t kSufficientBytes = std::uint64_t{64} << 20U;  // bytes; for the tables of a large host

Findings locked_memory(const Start& start) {
  int major = 0;
  int minor = 0;
  const bool counted = std::sscanf(start.host.kernel.c_str(), "%4d.%4d", &major, &minor) == 2 &&
                       std::pair(major, minor) < std::pair(5, 11);  // later kernels charge the memory cgroup
  const bool may_raise_it = ((start.host.privileges.value_or(0) >> unsigned{CAP_SYS_RESOURCE}) & 1U) != 0;
  if (!counted || may_raise_it || !start.host.locked_memory_bytes ||
      *start.host.locked_memory_bytes >= kSufficientBytes) {
    return {};
  }
  auto one = finding(model::Verdict::advise, "", "tables of the block programs may not fit",
                     "this kernel counts them as locked memory, whose limit is low",
                     "start the daemon with LimitMEMLOCK=infinity, as ssdpulse.service does, or with CAP_SYS_RESOURCE");
  one.evidence = {{"limit_bytes", static_cast<double>(*start.host.locked_memory_bytes)}};
  return {one};
}

}  // namespace

const HostCheck kLockedMemory{"memlock", "locked memory is not limited too much", locked_memory};

}  // namespace ssdpulse::doctor
