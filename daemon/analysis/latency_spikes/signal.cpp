// SPDX-License-Identifier: Apache-2.0
#include "daemon/analysis/latency_spikes/signal.h"

namespace ssdpulse::analysis {

Evidence evidence_beyond(const SignalWindow& now, double limit) {
  Evidence slow{now.begin, now.end};
  slow.limit = limit;
  const std::uint64_t ios = now.io.total.count();
  if (ios > 0) {
    slow.ios = count_above(now.io.total.words, limit);
    slow.tail = upper_bound_seconds(quantile_bucket(now.io.total.words, kTail));
    slow.slowest = slowest_seconds(now.io.total);
    slow.share = static_cast<double>(slow.ios) / static_cast<double>(ios);
  }
  return slow;
}

}  // namespace ssdpulse::analysis
