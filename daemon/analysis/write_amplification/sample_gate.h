// SPDX-License-Identifier: Apache-2.0
// SampleGate: keeps samples whose counters cannot be true away from a ledger, which never forgets.
// A drive may show one absurd page. So a sample that contradicts the newest accepted one, by a fall or by growth that
// no drive can write in the time, is held until the next one:
//   the next continues from the one held          both are accepted: the counters did fall, or leap
//   it continues from the newest one accepted     the one held was an absurd page, or shows a fall that was made up
//                                                 for since. It certainly was absurd if a counter would have had to
//                                                 grow faster than any drive, however late counters are; otherwise it
//                                                 is doubted: there is no way to tell
//   neither                                       the one held is doubted, unless absurd, and the next is held; so
//                                                 pages that are absurd in ever other ways confirm nothing
// Not detected: an absurd page that looks like growth within what a drive can write.
#pragma once

#include <optional>
#include <vector>

#include "daemon/analysis/write_amplification/write_ledger.h"

namespace ssdpulse::analysis {

/// Whether a counter is lower in `to` than in `from`, or falls within `to`.
bool fell(const WriteSample& from, const WriteSample& to);

class SampleGate {
 public:
  struct Verdict {
    std::optional<WriteSample> doubted;  // shows a possible fall, before any of the accepted ones
    bool fell_further = false;           // from the doubted one to the new sample: another fall, or unknown
    bool leapt = false;                  // before the last accepted one, by more than any drive can write
    std::vector<WriteSample> accepted;   // in order of time
  };

  /// `newest`: the newest sample accepted so far.
  Verdict judge(const std::optional<WriteLedger::Newest>& newest, const WriteSample& sample);

  /// The sample that waits for the next one.
  [[nodiscard]] const std::optional<WriteSample>& held() const { return held_; }

 private:
  std::optional<WriteSample> held_;
};

}  // namespace ssdpulse::analysis
