// SPDX-License-Identifier: Apache-2.0
#include "daemon/audit/rules/rules.h"

namespace ssdpulse::audit {
namespace {

/// Limits in the top two levels, and those that the daemon sees on whoever has sent I/O; empty: none is known.
std::string limited(const Facts& facts) {
  std::string groups = facts.settings.files.text("sys/fs/cgroup/io.cost.qos").contains("enable=1") ? "io.cost.qos" : "";
  for (const auto& [file, limit] : facts.settings.cgroup_limits) {
    groups += (groups.empty() ? "" : " ") + util::for_json(file);
  }
  return groups.empty() && facts.measured.tenant_limits ? "some below the top two levels" : util::for_json(groups, 200);
}

Finding cgroup_limits(const Facts& facts) {
  const auto waited = facts.measured.per_day(facts.measured.cgroup_limit_seconds);
  const std::string groups = limited(facts);
  if (groups.empty() && waited.value_or(0) == 0) {
    return ok("no control group is known to limit I/O");
  }
  Finding bad = info("control groups limit I/O",
                     "their I/Os wait before they reach a drive" + (groups.empty() ? "" : ": " + groups));
  bad.change = "raise the limits of those that wait (`ssdpulse why` names them), or accept this finding";
  bad.undo = "the former limits";
  bad.risk = "others on the same drive wait longer";
  return weigh(facts, std::move(bad), {{"excess_seconds_per_day", waited, kExcessLimit}});
}

}  // namespace

const Rule kF15{.id = "F15",
                .title = "I/O limits of control groups",
                .limit = "somebody waits at a limit for 60 s a day",
                .source = "Documentation/admin-guide/cgroup-v2.rst, io; ssdpulse, ssdpulse_host_wait_seconds_total",
                .of_host = cgroup_limits};

}  // namespace ssdpulse::audit
