// SPDX-License-Identifier: Apache-2.0
// Polls drives less often where reading their log pages hurts I/O. One LogReadWatch per drive measures; what
// it finds applies to the whole model. After a calm day, a model is polled more often again.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>

#include "daemon/analysis/log_read_effect.h"
#include "daemon/model/clock.h"
#include "daemon/model/latency_words.h"

namespace ssdpulse::drives {

using model::SteadyTime;

class Patience {
 public:
  /// Polls of drives of this model are so many intervals apart.
  [[nodiscard]] unsigned of(const std::string& model) const;
  /// It hurt; false where patience is at its end.
  bool grow(const std::string& model, SteadyTime now);
  /// It did not; true where that was so for a day, and the drives are asked more often from now on.
  bool rest(const std::string& model, SteadyTime now);

 private:
  struct Entry {
    unsigned intervals = 1;
    SteadyTime since;  // of the last change, or the last time that it hurt
  };
  std::map<std::string, Entry> by_model_;
};

class LogReadWatch {
 public:
  explicit LogReadWatch(Patience& patience) : patience_(patience) {}

  /// `words`: latencies of the drive's reads and writes so far. Where a spike is why the poll begins, the I/Os near it
  /// are neither near ones nor others: they were slow before.
  void poll_begins(model::LatencyWords words, bool for_a_spike) {
    words_before_ = std::move(words);
    for_a_spike_ = for_a_spike;
  }
  /// The I/Os near a log read end 50 ms after it: then measure() is to be called.
  void poll_ended(SteadyTime now);
  [[nodiscard]] std::optional<SteadyTime> near_until() const { return near_until_; }
  void measure(const model::LatencyWords& words, const std::string& model, SteadyTime now);

  /// p99 near log reads over that of the others.
  [[nodiscard]] std::optional<double> ratio() const { return ratio_; }

 private:
  Patience& patience_;
  analysis::LogReadEffect effect_;
  unsigned measured_at_ = 1;          // the patience that effect_ was measured under
  model::LatencyWords words_before_;  // when the poll began
  bool for_a_spike_ = false;
  model::LatencyWords words_counted_;  // already in the effect's total, or not to be
  std::optional<SteadyTime> near_until_;
  std::optional<double> ratio_;
};

}  // namespace ssdpulse::drives
