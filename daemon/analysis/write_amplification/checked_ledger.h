// SPDX-License-Identifier: Apache-2.0
// CheckedLedger: a ledger that no single absurd page can poison.
// Such a page costs windows, never totals. A page with impossible values costs nothing. A page that shows a possible
// fall costs the windows, which restart with the next reading, just as after a real fall. If the daemon is stopped
// while a page waits, that costs the windows and the lifetime's ratio. Growth within what a drive can write (64 GB/s)
// is accepted, and so is the very first reading of a drive without history.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "daemon/analysis/write_amplification/sample_gate.h"
#include "daemon/analysis/write_amplification/write_ledger.h"
#include "daemon/util/result.h"

namespace ssdpulse::analysis {

class CheckedLedger {
 public:
  using Time = WriteLedger::Time;

  explicit CheckedLedger(Time poll_interval) : ledger_(poll_interval) {}
  void set_poll_interval(Time interval) { ledger_.set_poll_interval(interval); }

  /// Samples come in the order of `at`.
  void observe(const WriteSample& sample);

  [[nodiscard]] const WriteLedger& ledger() const { return ledger_; }
  /// The newest accepted sample of this process.
  [[nodiscard]] const std::optional<WriteSample>& newest() const { return newest_; }
  /// Whether a sample is waiting for the next one to confirm it.
  [[nodiscard]] bool in_doubt() const { return gate_.held().has_value(); }

  /// Like WriteLedger's. A waiting sample is doubted, because the next process will not know about it.
  [[nodiscard]] std::string save() const;
  static util::Result<CheckedLedger> restore(std::string_view text, Time poll_interval, Time at,
                                             std::chrono::system_clock::time_point wall);
  void remember(const WriteSample& sample) { ledger_.remember(sample); }

 private:
  WriteLedger ledger_;
  SampleGate gate_;
  std::optional<WriteSample> newest_;
};

}  // namespace ssdpulse::analysis
