// SPDX-License-Identifier: Apache-2.0
#include "daemon/doctor/checks.h"

namespace ssdpulse::doctor {
namespace {

Findings drive_nodes(const Start& start) {
  Findings found;
  for (const model::PathProbe& node : start.host.drive_nodes) {
    const std::string controller = node.path.substr(node.path.rfind('/') + 1);
    if (!node.exists) {
      found.push_back(finding(model::Verdict::advise, controller,
                              "log pages cannot be read: its device node is missing", node.path + " is not there",
                              "give the container the drive's device nodes, or run udevadm trigger"));
    } else if (!node.readable) {
      found.push_back(finding(model::Verdict::unknown, controller, "whether log pages can be read",
                              "this user may not open " + node.path, "ask as root"));
    }
  }
  return found;
}

}  // namespace

const HostCheck kDriveNodes{"drive-nodes", "the nodes of all NVMe drives are there", drive_nodes};

}  // namespace ssdpulse::doctor
