// SPDX-License-Identifier: Apache-2.0
#include "daemon/audit/rules/rules.h"

namespace ssdpulse::audit {
namespace {

Finding numa(const Facts& facts, const DiskSettings& disk) {
  if (facts.settings.numa_nodes.value_or(1) < 2) {
    return not_applicable("the host has one node");
  }
  const std::string node =
      disk.controller.has("numa_node") ? disk.controller.text("numa_node") : disk.files.text("device/numa_node");
  if (node.empty() || node == "-1") {
    return unknown("the node that it is attached to", "the kernel does not say");
  }
  return info("it is attached to node " + node, "run programs that need its lowest latency there");
}

}  // namespace

const Rule kN8{.id = "N8",
               .title = "NUMA node of a drive",
               .limit = "never: which program runs where is not measured",
               .source = "Documentation/ABI/stable/sysfs-devices-node",
               .of_disk = numa};

}  // namespace ssdpulse::audit
