// SPDX-License-Identifier: Apache-2.0
// All that the rules of the audit look at, gathered once: a rule is a pure function of it.
#pragma once

#include <chrono>
#include <map>
#include <string>

#include "daemon/audit/device_past.h"
#include "daemon/audit/measurements.h"
#include "daemon/model/settings.h"

namespace ssdpulse::audit {

struct Facts {
  model::HostSettings settings;
  Measurements measured;
  std::map<std::string, DevicePast> pasts = {};  // by the disk's name: what the history knows of it
  /// For how long must have been observed before a rule advises something; some need a multiple of it (Rule::days).
  /// A day by default: loads have daily habits.
  std::chrono::seconds enough = std::chrono::hours(24);
};

}  // namespace ssdpulse::audit
