// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdio>

#include "daemon/doctor/checks.h"

namespace ssdpulse::doctor {
namespace {

Findings kernel_version(const Start& start) {
  constexpr int kOldestMajor = 5;
  constexpr int kOldestMinor = 10;
  int major = 0;
  int minor = 0;
  if (std::sscanf(start.host.kernel.c_str(), "%4d.%4d", &major, &minor) != 2) {
    return {
        finding(model::Verdict::unknown, "", "version of the kernel", "/proc/sys/kernel/osrelease is not readable")};
  }
  if (std::pair(major, minor) >= std::pair(kOldestMajor, kOldestMinor)) {
    return {};
  }
  return {finding(model::Verdict::danger, "",
                  fmt::format("Linux {} is too old: nothing can be measured", start.host.kernel),
                  "the block programs need Linux 5.10", "boot Linux 5.10 or newer")};
}

}  // namespace

const HostCheck kKernelVersion{"kernel-version", "the kernel is new enough", kernel_version};

}  // namespace ssdpulse::doctor
