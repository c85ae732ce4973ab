// SPDX-License-Identifier: Apache-2.0
// Incident: what users notice as one slow time: the spikes of a device's operations that overlap or follow within
// seconds, and those of the other members of its array or volume. It has one beginning, one end, one cause and one
// culprit; its spikes are the details. Values only.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "daemon/model/device.h"
#include "daemon/model/latency_spike.h"

namespace ssdpulse::model {

/// Spikes no further apart belong to one incident.
inline constexpr std::chrono::seconds kIncidentGap{10};

inline std::chrono::system_clock::time_point end_of(const LatencySpike& spike) {
  return spike.begin + std::chrono::duration_cast<std::chrono::system_clock::duration>(spike.duration);
}

/// Whether the spike harms a tenant. A sender's own backlog (queue, saturation) is an incident only if it slows another
/// tenant, or commits, or, where there is no other tenant, reads.
bool is_harmful(const LatencySpike& spike);

/// Who caused it, as far as the cause has a sender: of discards, flushes or load. Null: no tenant can be named, or it
/// is the root, which is no tenant.
const SpikeTenant* culprit_of(const LatencySpike& spike);

/// Seconds that tenants other than the culprit waited in the spike; where tenants are not known, or there is one alone,
/// all that was waited. What has not completed yet counts, too.
double harm_of(const LatencySpike& spike);

struct Incident {
  bool going_on = false;             // one of its spikes is
  std::vector<LatencySpike> spikes;  // the first one is what to name it by: see below; never empty
  std::chrono::system_clock::time_point begin;
  std::chrono::system_clock::time_point end;  // so far, if it is going on

  /// Of the operation in which tenants other than the culprit waited longest; with one tenant alone, commits and reads
  /// before writes. A flush is named only where no commit is slow: commits are what a caller of fsync waits for.
  [[nodiscard]] const LatencySpike& headline() const { return spikes.front(); }
  [[nodiscard]] double harm_seconds() const;    // of all its spikes; flushes within commits count once
  [[nodiscard]] double excess_seconds() const;  // likewise
  /// The spike that names the culprit; it has the cause of the headline. Null: no tenant can be named.
  [[nodiscard]] const LatencySpike* with_culprit() const;
  /// The tenant other than the culprit that waited longest in the headline's operation, or the culprit where it is
  /// alone. Null: not known.
  [[nodiscard]] const SpikeTenant* victim() const;
};

/// Arrays and volumes by the devices below them: devices that share one are one group. A device in none is its own.
class DeviceGroups {
 public:
  DeviceGroups() = default;
  explicit DeviceGroups(const std::vector<Membership>& memberships);
  [[nodiscard]] std::string of(const std::string& device) const;

 private:
  std::map<std::string, std::string> group_;  // by device
};

/// By their end, the last one first; ongoing incidents before all others, most harm first. Spikes that are not
/// harmful are left out.
std::vector<Incident> incidents_of(const std::vector<LatencySpike>& ended, const std::vector<LatencySpike>& going_on,
                                   const DeviceGroups& groups = {});

}  // namespace ssdpulse::model
