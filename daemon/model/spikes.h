// SPDX-License-Identifier: Apache-2.0
// Latency spikes: when a device's reads, writes, flushes or commits were slower than usual, and why.
// Values only. A spike keeps its numbers, so that its cause can be checked.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/model/operation.h"  // index(), name()

namespace ssdpulse::model {

enum class SpikeCause : std::uint8_t { discard, flush, gc, queue, saturation, thermal, error, unknown };
inline constexpr std::size_t kSpikeCauses = 8;
inline constexpr std::array<std::string_view, kSpikeCauses> kSpikeCauseNames{
    "discard", "flush", "gc", "queue", "saturation", "thermal", "error", "unknown"};

/// Spikes are detected in these. `flush`: flush requests; `commit`: what a caller of fsync waits for, see
/// DeviceIo::commit_latency. The first three stand for the block layer's operations of these names, in this order.
enum class SpikeOperation : std::uint8_t { read, write, flush, commit };
inline constexpr std::size_t kSpikeOperations = 4;
inline constexpr std::array<std::string_view, kSpikeOperations> kSpikeOperationNames{"read", "write", "flush",
                                                                                     "commit"};

/// A tenant's part in a spike; see model/tenants.h.
struct SpikeTenant {
  std::string name;
  std::uint64_t bytes = 0;    // read and written in it; discarded, where the cause is discards
  double waited_seconds = 0;  // by its I/Os together, in the device, beyond what they usually take
  bool operator==(const SpikeTenant&) const = default;
};
inline constexpr std::size_t kMostSpikeTenants = 3;

struct LatencySpike {
  std::string device;
  SpikeOperation operation = SpikeOperation::read;
  std::chrono::system_clock::time_point begin;  // by the clock at the time it was seen; the end is begin + duration
  std::chrono::nanoseconds duration{};
  double peak_seconds = 0;      // in the worst second: 99th percentile of total latency, or the few that waited longest
  double baseline_seconds = 0;  // what the 99th percentile was before
  double excess_seconds = 0;    // waited in it beyond the usual, by all I/Os together
  std::uint64_t ios = 0;        // slower than the limit
  SpikeCause cause = SpikeCause::unknown;
  std::map<std::string, double> evidence;  // what the cause was derived from
  std::vector<std::string> missing;        // what could not be known, in words
  std::vector<SpikeTenant> heaviest = {};  // tenants with most bytes, the first most; at most kMostSpikeTenants
  std::vector<SpikeTenant> slowed = {};    // tenants that waited longest beyond their own usual; likewise
};

/// name=value, separated by blanks. Of tenants, NAME:BYTES or NAME:SECONDS, separated by commas.
inline std::string evidence_text(const LatencySpike& spike) {
  std::ostringstream text;
  for (const auto& [what, value] : spike.evidence) {
    text << (text.tellp() > 0 ? " " : "") << what << '=' << value;
  }
  for (std::size_t i = 0; i < spike.heaviest.size(); ++i) {
    text << (i > 0              ? ","
             : text.tellp() > 0 ? " heaviest="
                                : "heaviest=")
         << spike.heaviest[i].name << ':' << spike.heaviest[i].bytes;
  }
  for (std::size_t i = 0; i < spike.slowed.size(); ++i) {
    text << (i > 0              ? ","
             : text.tellp() > 0 ? " slowed="
                                : "slowed=")
         << spike.slowed[i].name << ':' << spike.slowed[i].waited_seconds;
  }
  return text.str();
}

inline std::string missing_text(const LatencySpike& spike) {
  std::string text;
  for (const std::string& what : spike.missing) {
    text += (text.empty() ? "" : "; ") + what;
  }
  return text;
}

/// One operation of one device.
struct SpikeFigures {
  std::array<std::uint64_t, kSpikeCauses> spikes{};  // that are over, by their final cause; like the next
  std::array<double, kSpikeCauses> seconds{};
  std::array<double, kSpikeCauses>
      excess_seconds{};               // waited beyond the usual, in spikes that are over; outside: unknown
  double pending_excess_seconds = 0;  // the same in ongoing spikes, or whose cause is not final: not yet counted above
  std::optional<SpikeCause> active;   // the best cause so far of an ongoing one
};

}  // namespace ssdpulse::model
