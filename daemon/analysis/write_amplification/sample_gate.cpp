// SPDX-License-Identifier: Apache-2.0
#include "daemon/analysis/write_amplification/sample_gate.h"

#include <algorithm>

namespace ssdpulse::analysis {
namespace {

using std::chrono::seconds;

/// More than four lanes of PCI Express 7 carry, and more than any media of one drive takes.
constexpr Uint128 kMostBytesPerSecond = 64'000'000'000;
constexpr Uint128 kGrains = 2;  // by which whole units can be off at either end

using Counter = std::optional<model::ByteCounter>;

bool comparable(const Counter& from, const Counter& to) {
  return from && to && from->unit_bytes == to->unit_bytes && from->unit_bytes != 0;
}

bool fell(const Counter& from, const Counter& to) { return comparable(from, to) && to->count < from->count; }

bool leaps(const Counter& from, const Counter& to, std::chrono::nanoseconds time) {
  if (!comparable(from, to)) {
    return false;
  }
  const auto whole = std::max<std::int64_t>(std::chrono::ceil<seconds>(time).count(), 1);
  const Uint128 most = kMostBytesPerSecond * static_cast<Uint128>(whole) + multiply(kGrains, to->unit_bytes);
  return multiply(subtract(to->count, from->count), to->unit_bytes) > most;
}

bool fell(const WriteSample& from, const WriteSample& to) {
  return fell(from.host_after, to.host_before) || fell(from.media, to.media);
}

bool leaps(const WriteSample& from, const WriteSample& to) {
  const auto time = to.at - from.at;
  return leaps(from.host_after, to.host_after, time) || leaps(from.media, to.media, time);
}

}  // namespace

std::vector<WriteSample> SampleGate::admit(const WriteSample& sample) {
  std::vector<WriteSample> admitted;
  const bool same_drive = last_ && last_->serial == sample.serial;
  if (same_drive && (fell(*last_, sample) || leaps(*last_, sample))) {
    if (!held_ || fell(*held_, sample)) {
      held_ = sample;
      return {};
    }
    admitted.push_back(*held_);
  }
  held_.reset();
  last_ = sample;
  admitted.push_back(sample);
  return admitted;
}

}  // namespace ssdpulse::analysis
