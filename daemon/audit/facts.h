// SPDX-License-Identifier: Apache-2.0
// All that the rules of the audit look at, gathered once: a rule is a pure function of it.
#pragma once

#include <chrono>
#include <string>

#include "daemon/audit/measurements.h"
#include "daemon/model/settings.h"

namespace ssdpulse::audit {

struct Facts {
  model::HostSettings settings;
  Measurements measured;
  /// For how long must have been observed before a rule advises something. A day by default: loads have daily habits.
  std::chrono::seconds enough = std::chrono::hours(24);
};

}  // namespace ssdpulse::audit
