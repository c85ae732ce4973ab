// SPDX-License-Identifier: Apache-2.0
#include "daemon/audit/rules/rules.h"

namespace ssdpulse::audit {
namespace {

Finding cgroup_limits(const Facts& facts) {
  const std::string model = facts.settings.files.text("sys/fs/cgroup/io.cost.qos");
  const bool cost = model.find("enable=1") != std::string::npos;
  if (facts.settings.cgroup_limits.empty() && !cost) {
    return ok("no control group in the top two levels limits I/O");
  }
  std::string groups = cost ? "io.cost.qos" : "";
  for (const auto& [file, limit] : facts.settings.cgroup_limits) {
    groups += (groups.empty() ? "" : " ") + file;
  }
  return info("control groups limit I/O", "their I/Os wait before measurement begins: " + groups.substr(0, 200));
}

}  // namespace

const Rule kF15{.id = "F15",
                .title = "I/O limits of control groups",
                .limit = "never: waiting there is not measured",
                .source = "Documentation/admin-guide/cgroup-v2.rst, io",
                .of_host = cgroup_limits};

}  // namespace ssdpulse::audit
