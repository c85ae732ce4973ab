// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "daemon/audit/rules/rules.h"

namespace ssdpulse::audit {
namespace {

Finding link_power(const Facts& facts) {
  const std::string policy = facts.settings.files.text("sys/module/pcie_aspm/parameters/policy");
  if (policy.empty()) {
    return not_applicable("the kernel has no PCI Express power management");
  }
  if (policy.find("[power") == std::string::npos) {
    return ok("the policy is " + policy);
  }
  Finding finding = info("PCI Express links sleep", "a link wakes up at the beginning of each burst of I/Os");
  finding.change = "echo performance > /sys/module/pcie_aspm/parameters/policy";
  finding.persistent = "pcie_aspm.policy=performance on the kernel's command line";
  const std::size_t open = policy.find('[');
  if (const auto before = shell_word(policy.substr(open + 1, policy.find(']', open) - open - 1))) {
    finding.undo = fmt::format("echo {} > /sys/module/pcie_aspm/parameters/policy", *before);
  }
  finding.risk = "power; where the firmware keeps control, the kernel refuses it";
  return finding;
}

}  // namespace

const Rule kN6{.id = "N6",
               .title = "Power management of PCI Express links",
               .limit = "never: the first I/O after a pause cannot be told apart",
               .source = "Documentation/admin-guide/kernel-parameters.txt, pcie_aspm",
               .of_host = link_power};

}  // namespace ssdpulse::audit
