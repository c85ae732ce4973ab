// SPDX-License-Identifier: Apache-2.0
#include "daemon/analysis/latency_spikes/outlier_signal.h"

#include <algorithm>
#include <cmath>

namespace ssdpulse::analysis {

std::optional<Evidence> OutlierSignal::evaluate(const SignalWindow& now, double limit) {
  Evidence slow = evidence_beyond(now, limit);
  slow.kind = EvidenceKind::rare;
  slow.tail = slow.slowest;
  slow.alone = true;
  parts_.push_back({now.begin, now.end, now.io.total.count(), slow.ios,
                    count_above(now.io.total.words, std::max(limit, kLongSeconds)),
                    seconds_above(now.io.total.words, 0), seconds_above(now.io.total.words, limit)});
  const Part all = sum_up(now.end);
  if (slow.ios == 0) {
    return std::nullopt;
  }
  if (now.in_spike) {
    return slow;
  }
  const bool rare = static_cast<double>(all.outliers) <= (1 - kTail) * static_cast<double>(all.ios);
  const bool much = last_share_ >= std::max(kMinShare, kTimesUsual * usual_share_);
  if (all.outliers < kMinOutliers || all.ios < kMinAllIos || !rare || (!much && !too_many_long(all))) {
    return std::nullopt;
  }
  const auto first = std::find_if(parts_.begin(), parts_.end(), [](const Part& part) { return part.outliers > 0; });
  slow.since = first->begin;
  slow.ios = all.outliers;
  return slow;
}

OutlierSignal::Part OutlierSignal::sum_up(SteadyTime end) {
  while (seconds_between(parts_.front().end, end) >= kPoolSeconds) {
    learn(parts_.front());
    parts_.pop_front();
  }
  Part all;
  for (const Part& part : parts_) {
    all.ios += part.ios;
    all.outliers += part.outliers;
    all.long_ones += part.long_ones;
    all.waited += part.waited;
    all.outliers_waited += part.outliers_waited;
  }
  last_share_ = all.waited > 0 ? all.outliers_waited / all.waited : 0;
  return all;
}

/// With few I/Os before, it is not known that long ones are unusual: one more then counts as if it had been seen.
bool OutlierSignal::too_many_long(const Part& all) const {
  const double share = static_cast<double>(all.long_ones) / static_cast<double>(all.ios);
  return all.long_ones >= kMinOutliers && share >= kMinLongShare &&
         share * usual_ios_ >= kTimesUsualLong * (usual_long_ + 1);
}

void OutlierSignal::learn(const Part& left) {
  const double past = std::exp(-seconds_between(left.begin, left.end) / kUsualLongSeconds);
  usual_ios_ = past * usual_ios_ + static_cast<double>(left.ios);
  usual_long_ = past * usual_long_ + static_cast<double>(left.long_ones);
}

void OutlierSignal::open() { parts_.clear(); }

void OutlierSignal::accept() {
  usual_share_ = last_share_;
  usual_long_ = usual_ios_;  // nothing is unusual until enough of the new normal was seen
}

}  // namespace ssdpulse::analysis
