// SPDX-License-Identifier: Apache-2.0
// CheckedLedger: a ledger that no single absurd page can poison.
// Such a page costs windows, never totals. A page with impossible values costs nothing. A page that shows a possible
// fall costs the windows, which restart with the next reading, just as after a real fall. If the daemon is stopped
// while a page waits, that costs the windows and the lifetime's ratio. Growth within what a drive can write (64 GB/s)
// is accepted, and so is the very first reading of a drive without history.
//
// Its SampleGate keeps samples whose counters cannot be true away from the ledger, which never forgets. A sample that
// contradicts the newest accepted sample, by a fall or by growth that no drive can write in the time, is held until the
// next one:
//   the next continues from the held sample          both are accepted: the counters did fall, or leap
//   it continues from the newest accepted sample     the held sample was an absurd page, or shows a fall that was made
//                                                    up for since. It certainly was absurd if a counter would have had
//                                                    to grow faster than any drive, however late counters are;
//                                                    otherwise it is doubted
//   neither                                          the held sample is doubted, unless absurd, and the next is held;
//                                                    so pages that are absurd in different ways confirm nothing
// Not detected: an absurd page that looks like growth within what a drive can write.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/base/result.h"
#include "daemon/wear/write_ledger.h"

namespace ssdpulse::wear {

/// Whether a counter is lower in `to` than in `from`, or falls within `to`.
bool fell(const WriteSample& from, const WriteSample& to);

class SampleGate {
 public:
  struct Verdict {
    std::optional<WriteSample> doubted;  // shows a possible fall, before any accepted sample
    bool fell_further = false;           // from the doubted sample to the new sample: another fall, or unknown
    bool leapt = false;                  // before the last accepted sample, by more than any drive can write
    std::vector<WriteSample> accepted;   // in order of time
  };

  /// `newest`: the newest sample accepted so far.
  Verdict judge(const std::optional<WriteLedger::Newest>& newest, const WriteSample& sample);

  /// The sample that waits for the next one.
  [[nodiscard]] const std::optional<WriteSample>& held() const { return held_; }

 private:
  std::optional<WriteSample> held_;
};

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

}  // namespace ssdpulse::wear
