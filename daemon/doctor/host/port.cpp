// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "daemon/doctor/checks.h"

namespace ssdpulse::doctor {
namespace {

Findings port(const Start& start) {
  Findings found;
  if (!start.host.listening_ports) {
    return {finding(model::Verdict::unknown, "", "whether the address is free", "/proc/self/net/tcp is not readable")};
  }
  const auto& taken = *start.host.listening_ports;
  for (const std::uint16_t wanted : start.ports) {
    if (std::binary_search(taken.begin(), taken.end(), wanted)) {
      found.push_back(
          finding(model::Verdict::advise, "", fmt::format("port {} is taken", wanted),
                  "another program listens on it, so that the daemon cannot serve what it measures",
                  fmt::format("ss -ltnp sport = :{}  # shows who; or set web.listen_address to another port", wanted)));
    }
  }
  return found;
}

}  // namespace

const HostCheck kPort{"port", "the address is free", port};

}  // namespace ssdpulse::doctor
