// SPDX-License-Identifier: Apache-2.0
#include "daemon/audit/rules/rules.h"

namespace ssdpulse::audit {
namespace {

Finding virtual_machines(const Facts& facts) {
  if (facts.settings.virtual_machines.empty()) {
    return not_applicable("no QEMU virtual machine is running here");
  }
  for (const std::string& line : facts.settings.virtual_machines) {
    if (line.empty()) {
      return unknown("how virtual machines reach their disks", "their command lines are not readable");
    }
    if (line.find("aio=threads") != std::string::npos ||
        (line.find("aio=") == std::string::npos && line.find("\"aio\"") == std::string::npos)) {
      return info("a virtual machine uses threads for its I/O",
                  "on fast drives they cost more than the drive's own time; "
                  "aio=io_uring with an iothread for each disk does not");
    }
  }
  return ok("virtual machines use no threads for their I/O");
}

}  // namespace

const Rule kF18{.id = "F18",
                .title = "How virtual machines reach their disks",
                .limit = "never: what happens inside them is not measured",
                .source = "qemu(1), -drive aio=",
                .of_host = virtual_machines};

}  // namespace ssdpulse::audit
