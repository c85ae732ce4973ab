// SPDX-License-Identifier: Apache-2.0
#include "daemon/analysis/flash_model/collection_watch.h"

#include <algorithm>

namespace ssdpulse::analysis {

std::optional<double> CollectionWatch::observe(std::optional<double> since_discard, const Counters& now,
                                               double drive_bytes) {
  const auto [host, media, host_doubt, media_doubt] = now;
  if (!since_discard || host < state_.host || media < state_.media) {
    state_ = {};  // nothing was discarded, or the counters were reset
    return std::nullopt;
  }
  if (*since_discard <= kLatest * drive_bytes) {
    state_ = {host, media, host, media, 0};
    return std::nullopt;
  }
  const double step = host - state_.host;
  if (state_.host_then < 0 || step < kStep * drive_bytes) {
    return std::nullopt;
  }
  const double least_ratio = (media - state_.media - media_doubt) / (step + host_doubt);
  const double written = (host - state_.host_then) / drive_bytes;
  state_.host = host;
  state_.media = media;
  if (written <= 1) {
    state_.free_ratio =
        (media - state_.media_then + media_doubt) / std::max(host - state_.host_then - host_doubt, 0.5 * step);
    return std::nullopt;
  }
  const bool costs = state_.free_ratio > 0 && least_ratio > state_.free_ratio + kCost;
  if (costs || written > kMaxDriveWrites) {
    state_ = {};
  }
  return costs ? std::optional(written - 1 + kLatest) : std::nullopt;
}

}  // namespace ssdpulse::analysis
