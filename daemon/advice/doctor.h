// SPDX-License-Identifier: Apache-2.0
// examine(): what is not measured here, why, and what would change it. Pure functions of what the running daemon knows,
// or of what the host offers while none runs.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "daemon/base/outside_text.h"
#include "daemon/config/value_text.h"
#include "daemon/model/finding.h"
#include "daemon/model/host_settings.h"
#include "daemon/model/snapshot.h"

namespace ssdpulse::advice {

using Findings = std::vector<model::Finding>;

/// For a running daemon, in the order of the list of checks. Every check is included: `ok` if everything is measured.
/// `info`: something is not measured, but nothing on this host would change that, or somebody chose it.
Findings examine(const model::Snapshot& snapshot);

/// What a daemon would find if the caller started it with this configuration.
struct Start {
  model::HostProbe host;
  std::vector<config::ListenAddress> addresses;  // that it would listen on
  std::vector<model::Device> devices;            // that it would measure
  std::uint64_t history_bytes = 0;               // that its history may have
};
Findings examine(const Start& start);

/// Replaces the findings of a daemon that gave none. `status`: the HTTP status of its answer; 0: something else came
/// instead of an answer; absent: nobody answered. `why`: the same in words, and what to do.
model::Finding unanswered(std::optional<int> status, const std::string& why);

/// Why no volume (device mapper, md, ...) is measured at this time; empty: they are, or the host has none.
std::string_view why_no_volumes(const model::Snapshot& snapshot);

/// Whether something is not measured that could be.
bool has_gaps(const Findings& findings);

/// Since when something is not measured: remembers when each finding of the doctor was first seen, for as long as it
/// stays. One thread calls observe(), any number may call examine().
class FindingAges {
 public:
  /// Examines every tenth Snapshot: what is permanently missing does not change by the second.
  void observe(const model::Snapshot& snapshot);

  /// The findings of this Snapshot, each with the time of its beginning, unless it already has one.
  [[nodiscard]] Findings examine(const model::Snapshot& snapshot) const;

 private:
  using Key = std::tuple<std::string, util::OutsideText, std::string>;  // id, device, what was found
  mutable std::mutex mutex_;
  std::map<Key, std::chrono::system_clock::time_point> since_;
};

}  // namespace ssdpulse::advice
