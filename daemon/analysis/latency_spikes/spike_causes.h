// SPDX-License-Identifier: Apache-2.0
// Finds why I/Os were slow. Scores every cause from numbers: the share of the slow I/Os' time that it explains, times
// how certain that is. The highest score names the cause; all numbers are the evidence.
#pragma once

#include <string>
#include <vector>

#include "daemon/analysis/latency_spikes/drive_readings.h"
#include "daemon/analysis/latency_spikes/spike_tally.h"
#include "daemon/analysis/latency_spikes/usual_load.h"
#include "daemon/model/spikes.h"

namespace ssdpulse::analysis {

struct CauseVerdict {
  model::SpikeCause cause = model::SpikeCause::unknown;
  double proof = 0;  // the share of the slow time that the cause explains, times how certain that is: 0 to 1
  bool only_within =
      false;               // cause `flush` of a commit: most of it was its own flushes; why they were slow is not known
  bool host_side = false;  // the drive's logs would not change it (except for heat, if the device is at its ceiling)
  model::SpikeEvidence evidence;
  std::vector<std::string> missing;
};

/// A cause needs this much of the excess.
inline constexpr double kMinScore = 0.3;

/// `drive`: null if its logs are not read.
CauseVerdict find_cause(const SpikeTally& tally, const UsualLoad& usual, const DriveVerdict* drive);

/// One spike of an incident, as far as it is judged by itself.
struct SpikeVerdict {
  model::Operation operation{};
  model::SpikeCause cause = model::SpikeCause::unknown;
  double proof = 0;
  bool only_within = false;
  double excess_seconds = 0;
  double load_to_baseline = 0;
  double flushes_to_baseline = 0;
};

/// The cause of an incident as a whole: the one with the strongest proof over the spikes of its operations. `unknown`
/// of one operation never outweighs the proof of another; but if reads or writes are slow for an unknown reason, then
/// that the commits' own flushes are slow, too, explains nothing.
model::SpikeCause cause_of_incident(const std::vector<SpikeVerdict>& spikes);

}  // namespace ssdpulse::analysis
