// SPDX-License-Identifier: Apache-2.0
#include "daemon/analysis/latency_spikes/outlier_signal.h"

#include <algorithm>

namespace ssdpulse::analysis {

std::optional<Evidence> OutlierSignal::look(const SignalWindow& now, double limit) {
  Evidence slow = evidence_beyond(now, limit);
  slow.kind = EvidenceKind::rare;
  slow.tail = slow.slowest;
  slow.alone = true;
  parts_.push_back({now.begin, now.end, count(now.io.total), slow.ios, seconds_above(now.io.total, 0),
                    seconds_above(now.io.total, limit)});
  const Part all = sum_up(now.end);
  if (slow.ios == 0) {
    return std::nullopt;
  }
  if (now.in_spike) {
    return slow;
  }
  const bool rare = static_cast<double>(all.outliers) <= (1 - kTail) * static_cast<double>(all.ios);
  const double least = std::max(kLeastShare, kTimesUsual * usual_share_);
  if (all.outliers < kLeastOutliers || all.ios < kLeastAll || !rare || last_share_ < least) {
    return std::nullopt;
  }
  const auto first = std::find_if(parts_.begin(), parts_.end(), [](const Part& part) { return part.outliers > 0; });
  slow.since = first->begin;
  slow.ios = all.outliers;
  return slow;
}

OutlierSignal::Part OutlierSignal::sum_up(SteadyTime end) {
  while (seconds_between(parts_.front().end, end) >= kPoolSeconds) {
    parts_.pop_front();
  }
  Part all;
  for (const Part& part : parts_) {
    all.ios += part.ios;
    all.outliers += part.outliers;
    all.waited += part.waited;
    all.outliers_waited += part.outliers_waited;
  }
  last_share_ = all.waited > 0 ? all.outliers_waited / all.waited : 0;
  return all;
}

void OutlierSignal::open() { parts_.clear(); }

}  // namespace ssdpulse::analysis
