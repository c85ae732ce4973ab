// SPDX-License-Identifier: Apache-2.0
#include <linux/capability.h>

#include "daemon/doctor/checks.h"

namespace ssdpulse::doctor {
namespace {

// BPF programs are attached to raw tracepoints. CAP_PERFMON allows that whatever this setting is; nothing else does.
constexpr unsigned kCapPerfmon = 38;

Findings perf_events(const Start& start) {
  if (!start.host.perf_event_paranoid || *start.host.perf_event_paranoid < 3 || !start.host.privileges) {
    return {};
  }
  const bool allowed = ((*start.host.privileges >> kCapPerfmon) & 1U) != 0 ||
                       ((*start.host.privileges >> unsigned{CAP_SYS_ADMIN}) & 1U) != 0;
  if (allowed) {
    return {};
  }
  return {finding(model::Verdict::advise, "", "programs cannot be attached by this user",
                  "kernel.perf_event_paranoid is above 2 and CAP_PERFMON is missing",
                  "start ssdpulse.service, which has it")};
}

}  // namespace

const HostCheck kPerfEvents{"perf-event-paranoid", "programs may be attached", perf_events};

}  // namespace ssdpulse::doctor
