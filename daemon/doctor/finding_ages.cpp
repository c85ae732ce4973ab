// SPDX-License-Identifier: Apache-2.0
#include "daemon/doctor/finding_ages.h"

#include <utility>

namespace ssdpulse::doctor {

void FindingAges::observe(const model::Snapshot& snapshot) {
  constexpr std::uint64_t kEvery = 10;
  if (snapshot.number % kEvery != 1) {
    return;
  }
  std::map<Key, std::chrono::system_clock::time_point> now;
  const Findings findings = doctor::examine(snapshot);
  const std::lock_guard lock(mutex_);
  for (const model::Finding& one : findings) {
    if (one.verdict != model::Verdict::ok) {
      const Key key{one.id, one.device, one.found};
      const auto known = since_.find(key);
      now.emplace(key, known == since_.end() ? snapshot.taken_at : known->second);
    }
  }
  since_ = std::move(now);
}

Findings FindingAges::examine(const model::Snapshot& snapshot) const {
  Findings findings = doctor::examine(snapshot);
  const std::lock_guard lock(mutex_);
  for (model::Finding& one : findings) {
    const auto known = since_.find({one.id, one.device, one.found});
    if (one.verdict != model::Verdict::ok && !one.since) {
      one.since = known == since_.end() ? snapshot.taken_at : known->second;
    }
  }
  return findings;
}

}  // namespace ssdpulse::doctor
