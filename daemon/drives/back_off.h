// SPDX-License-Identifier: Apache-2.0
// PollBackoff and LogReadWatch: poll drives less often if reading their log pages slows down I/O. One LogReadWatch per
// drive measures; its result applies to all drives of the model, which share a PollBackoff. After a day without such an
// effect, the model is polled more often again. Owned by the thread that polls.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>

#include "daemon/analysis/log_read_effect.h"
#include "daemon/model/clock.h"
#include "daemon/model/latency_buckets.h"

namespace ssdpulse::drives {

using model::SteadyTime;

class PollBackoff {
 public:
  /// The number of intervals between two polls of a drive of this model.
  [[nodiscard]] unsigned intervals(const std::string& model) const;
  /// Log reads slowed down I/O; false if the intervals cannot grow any more.
  bool increase(const std::string& model, SteadyTime now);
  /// They did not; true if they have not for a day, and the drives are polled more often from now on.
  bool decrease(const std::string& model, SteadyTime now);

 private:
  struct Entry {
    unsigned intervals = 1;
    SteadyTime since;  // of the last change, or the last time that log reads hurt
  };
  std::map<std::string, Entry> by_model_;
};

class LogReadWatch {
 public:
  /// Keeps a reference to `backoff`.
  explicit LogReadWatch(PollBackoff& backoff) : backoff_(backoff) {}

  /// `words`: latencies of the drive's reads and writes so far. If a spike is the reason for the poll, the I/Os near it
  /// count neither as near ones nor as others: they were slow before.
  void poll_begins(model::LatencyBuckets buckets, bool for_a_spike) {
    buckets_before_ = std::move(buckets);
    for_a_spike_ = for_a_spike;
  }
  /// I/Os count as near a log read until 50 ms after it: then measure() must be called.
  void poll_ended(SteadyTime now);
  [[nodiscard]] std::optional<SteadyTime> near_until() const { return near_until_; }
  void measure(const model::LatencyBuckets& buckets, const std::string& model, SteadyTime now);

  /// p99 of the I/Os near log reads divided by that of the others.
  [[nodiscard]] std::optional<double> ratio() const { return ratio_; }

 private:
  PollBackoff& backoff_;
  analysis::LogReadEffect effect_;
  unsigned measured_at_ = 1;              // backoff_.intervals() while effect_ was measured
  model::LatencyBuckets buckets_before_;  // when the poll began
  bool for_a_spike_ = false;
  model::LatencyBuckets buckets_counted_;  // already in the effect's total, or to be left out of it
  std::optional<SteadyTime> near_until_;
  std::optional<double> ratio_;
};

}  // namespace ssdpulse::drives
