// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <linux/capability.h>

#include <array>
#include <utility>

#include "daemon/doctor/checks.h"

namespace ssdpulse::doctor {
#ifndef CAP_PERFMON  // older headers
#define CAP_PERFMON 38
#define CAP_BPF 39
#endif
namespace {

Findings privileges(const Start& start) {
  if (!start.host.privileges) {
    return {finding(model::Verdict::unknown, "", "capabilities", "/proc/self/status is not readable")};
  }
  const auto has = [&](unsigned bit) { return ((*start.host.privileges >> bit) & 1U) != 0; };
  if (has(CAP_SYS_ADMIN)) {
    return {};
  }
  constexpr auto kNeeded =
      std::to_array<std::pair<unsigned, const char*>>({{CAP_BPF, "CAP_BPF"}, {CAP_PERFMON, "CAP_PERFMON"}});
  std::string missing;
  for (const auto& [bit, name] : kNeeded) {
    missing += has(bit) ? "" : fmt::format("{}{}", missing.empty() ? "" : " and ", name);
  }
  if (!missing.empty()) {
    return {finding(model::Verdict::unknown, "", "whether the block programs can be loaded",
                    "this user lacks " + missing + ", as a daemon started like this would",
                    "ask as root, or start ssdpulse.service, which has them")};
  }
  return {finding(model::Verdict::info, "", "log pages cannot be read by this user", "CAP_SYS_ADMIN is missing",
                  "ssdpulse-nvme.service reads them for the daemon")};
}

}  // namespace

const HostCheck kPrivileges{"capabilities", "this user may load programs and read log pages", privileges};

}  // namespace ssdpulse::doctor
