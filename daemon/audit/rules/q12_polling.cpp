// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "daemon/audit/rules/rules.h"

namespace ssdpulse::audit {
namespace {

Finding polling(const Facts& facts) {
  const auto queues = facts.settings.files.number("sys/module/nvme/parameters/poll_queues");
  if (!queues) {
    return not_applicable("the host has no NVMe driver");
  }
  if (*queues == 0) {
    return ok("no queues are kept for polling");
  }
  Finding finding = info(fmt::format("{} queues are kept for polling", *queues),
                         "only programs that poll use them, and they are taken from those with interrupts");
  finding.persistent = "remove poll_queues= from the options of nvme in /etc/modprobe.d, then restart the host";
  finding.risk = "programs that poll wait for interrupts";
  return finding;
}

}  // namespace

const Rule kQ12{.id = "Q12",
                .title = "Queues for polling",
                .limit = "never: programs that poll are not seen",
                .source = "drivers/nvme/host/pci.c, poll_queues",
                .of_host = polling};

}  // namespace ssdpulse::audit
