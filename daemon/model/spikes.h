// SPDX-License-Identifier: Apache-2.0
// Latency spikes: when a device's reads, writes, flushes or commits were slower than usual, and why.
// Values only. A spike keeps its numbers, so that its cause can be checked.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/model/spike_cause.h"  // index(), name()
#include "daemon/model/spike_evidence.h"
#include "daemon/model/tenants.h"

namespace ssdpulse::model {

/// A tenant's part in a spike; see model/tenants.h.
struct SpikeTenant {
  std::string name;
  std::uint64_t bytes = 0;    // read and written in it; discarded, where the cause is discards
  std::uint64_t commits = 0;  // flushes and FUA writes
  /// By its I/Os together beyond what is usual: reads and writes in the device, and before it if it sent nearly all of
  /// them; commits in all.
  double waited_seconds = 0;
  bool operator==(const SpikeTenant&) const = default;
};
inline constexpr std::size_t kMaxSpikeTenants = 3;

struct LatencySpike {
  std::string device;
  Operation operation = Operation::read;
  std::chrono::system_clock::time_point begin;  // by the clock at the time it was seen; the end is begin + duration
  std::chrono::nanoseconds duration{};
  double peak_seconds = 0;      // in the worst second: 99th percentile of total latency, or the few that waited longest
  double baseline_seconds = 0;  // what the 99th percentile was before
  double excess_seconds = 0;    // waited in it beyond the usual, by all I/Os together
  std::uint64_t ios = 0;        // slower than the limit
  SpikeCause cause = SpikeCause::unknown;
  SpikeEvidence evidence;            // what the cause was derived from
  std::vector<std::string> missing;  // what could not be known, in words
  // Tenants, the first most, at most kMaxSpikeTenants each:
  std::vector<SpikeTenant> heaviest = {};    // with most bytes beyond their own usual
  std::vector<SpikeTenant> committers = {};  // with most commits beyond their own usual
  std::vector<SpikeTenant> slowed = {};      // that waited longest beyond their own usual
  std::uint64_t active_tenants = 0;          // with an I/O per second or more, without the root; 0: not known
};

/// name=value, separated by blanks. Of tenants, NAME:BYTES, NAME:COMMITS or NAME:SECONDS, separated by commas.
inline std::string evidence_text(const LatencySpike& spike) {
  std::ostringstream text;
  const auto key = [&text](std::string_view what) -> std::ostream& {
    return text << (text.tellp() > 0 ? " " : "") << what << '=';
  };
  const auto tenants = [&](std::string_view what, const std::vector<SpikeTenant>& list, auto value) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      (i > 0 ? text << ',' : key(what)) << list[i].name << ':' << list[i].*value;
    }
  };
  for (const auto& [what, value] : spike.evidence) {
    key(evidence_row(what).name) << value;
  }
  if (spike.active_tenants > 0) {
    key("active_tenants") << spike.active_tenants;
  }
  tenants("heaviest", spike.heaviest, &SpikeTenant::bytes);
  tenants("committers", spike.committers, &SpikeTenant::commits);
  tenants("slowed", spike.slowed, &SpikeTenant::waited_seconds);
  return text.str();
}

inline std::string missing_text(const LatencySpike& spike) {
  std::string text;
  for (const std::string& what : spike.missing) {
    text += (text.empty() ? "" : "; ") + what;
  }
  return text;
}

/// How slow one operation of one device is when nothing is wrong: what everything shows as usual.
struct SpikeBaseline {
  double p99_seconds = 0;      // of total latency
  double learned_seconds = 0;  // of healthy load that it rests on
  bool operator==(const SpikeBaseline&) const = default;
};

/// One operation of one device.
struct SpikeFigures {
  std::array<std::uint64_t, kSpikeCauses> spikes{};  // that are over, by their final cause; like the next
  std::array<double, kSpikeCauses> seconds{};
  std::array<double, kSpikeCauses>
      excess_seconds{};               // waited beyond the usual, in spikes that are over; outside: unknown
  double pending_excess_seconds = 0;  // the same in ongoing spikes, or whose cause is not final: not yet counted above
  std::optional<SpikeCause> active;   // the best cause so far of an ongoing one
  std::optional<SpikeBaseline> baseline = {};  // absent until it is known
};

}  // namespace ssdpulse::model
