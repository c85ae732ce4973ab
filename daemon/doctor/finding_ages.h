// SPDX-License-Identifier: Apache-2.0
// FindingAges: since when something is not measured. Remembers when each finding of the doctor was first seen, for as
// long as it stays. One thread calls observe(), any number may call examine().
#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <string>
#include <tuple>

#include "daemon/doctor/doctor.h"
#include "daemon/util/outside_text.h"

namespace ssdpulse::doctor {

class FindingAges {
 public:
  /// Looks at every tenth Snapshot: what is permanently missing does not change by the second.
  void observe(const model::Snapshot& snapshot);

  /// The findings of this Snapshot, each with the time of its beginning, unless it already has one.
  [[nodiscard]] Findings examine(const model::Snapshot& snapshot) const;

 private:
  using Key = std::tuple<std::string, util::OutsideText, std::string>;  // id, device, what was found
  mutable std::mutex mutex_;
  std::map<Key, std::chrono::system_clock::time_point> since_;
};

}  // namespace ssdpulse::doctor
