// SPDX-License-Identifier: Apache-2.0
// Everything that the audit's rules examine, gathered once: a rule is a pure function of it.
#pragma once

#include <chrono>
#include <map>
#include <string>

#include "daemon/audit/device_evidence.h"
#include "daemon/audit/measured.h"
#include "daemon/model/settings.h"

namespace ssdpulse::audit {

struct Facts {
  model::HostSettings settings;
  Measured measured;
  std::map<std::string, DeviceEvidence> evidence = {};  // by the disk's name: what the history knows about it
  /// How long the host must have been observed before a rule advises something; some rules need a multiple of it
  /// (Rule::days). A day by default: loads have daily habits.
  std::chrono::seconds enough = std::chrono::hours(24);
};

}  // namespace ssdpulse::audit
