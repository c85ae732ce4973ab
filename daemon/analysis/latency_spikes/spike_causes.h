// SPDX-License-Identifier: Apache-2.0
// Finds why I/Os were slow. Scores every cause from numbers: the share of the slow I/Os' time that it explains, times
// how certain that is. The highest score names the cause; all numbers are the evidence.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "daemon/analysis/latency_spikes/drive_readings.h"
#include "daemon/analysis/latency_spikes/spike_tally.h"
#include "daemon/analysis/latency_spikes/usual_load.h"
#include "daemon/model/spikes.h"

namespace ssdpulse::analysis {

struct CauseVerdict {
  model::SpikeCause cause = model::SpikeCause::unknown;
  bool host_side = false;  // the drive's logs would not change it (except for heat, if the device is at its ceiling)
  std::map<std::string, double> evidence;
  std::vector<std::string> missing;
};

/// A cause needs this much of the excess.
inline constexpr double kLeastScore = 0.3;

/// `drive`: null if its logs are not read.
CauseVerdict find_cause(const SpikeTally& tally, const UsualLoad& usual, const DriveVerdict* drive);

}  // namespace ssdpulse::analysis
