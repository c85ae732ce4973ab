// SPDX-License-Identifier: Apache-2.0
#include "daemon/audit/rules/rules.h"

namespace ssdpulse::audit {
namespace {

Finding cgroup_limits(const Facts& facts) {
  const std::string model = facts.settings.files.text("sys/fs/cgroup/io.cost.qos");
  const bool cost = model.find("enable=1") != std::string::npos;
  if (facts.settings.cgroup_limits.empty() && !cost) {
    return ok("no group of processes has a limit on I/O, as far as two levels show");
  }
  std::string groups = cost ? "io.cost.qos" : "";
  for (const auto& [file, limit] : facts.settings.cgroup_limits) {
    groups += (groups.empty() ? "" : " ") + file;
  }
  return info("groups of processes have limits on I/O",
              "their I/Os wait before ours begin to be measured: " + groups.substr(0, 200));
}

}  // namespace

const Rule kF15{.id = "F15",
                .title = "Limits on I/O of control groups",
                .limit = "never: what waits there is not measured",
                .source = "Documentation/admin-guide/cgroup-v2.rst, io",
                .of_host = cgroup_limits};

}  // namespace ssdpulse::audit
