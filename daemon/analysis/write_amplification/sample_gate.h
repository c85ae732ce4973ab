// SPDX-License-Identifier: Apache-2.0
// SampleGate: keeps samples whose counters cannot be true away from a ledger, which never forgets.
// A drive may show one absurd page. So a sample that contradicts the newest one believed, by a fall or by a growth that
// no drive can write in the time, is held until the next one:
//   the next continues from the one held          both are believed: the counters did fall, or leap
//   it continues from the newest one believed     the one held was an absurd page, or shows a fall that was made up
//                                                 for since. It certainly was a page if a counter would have had to
//                                                 grow faster than any drive, however late counters are; otherwise it
//                                                 is doubted: there is no way to tell
//   neither                                       the one held is doubted, unless absurd, and the next is held
// Not noticed: an absurd page that looks like a growth within what a drive can write.
#pragma once

#include <optional>
#include <vector>

#include "daemon/analysis/write_amplification/write_ledger.h"

namespace ssdpulse::analysis {

/// Whether a counter shows less in `to` than before, or within it.
bool fell(const WriteSample& from, const WriteSample& to);

class SampleGate {
 public:
  struct Verdict {
    std::optional<WriteSample> doubted;  // shows a fall that may have been, before any of those that are believed
    bool fell_further = false;           // from the one doubted to the sample: another fall, or unknown
    bool leapt = false;                  // before the last of those that are believed, and no drive can
    std::vector<WriteSample> believed;   // in the order of time
  };

  /// `newest`: what is believed so far.
  Verdict judge(const std::optional<WriteLedger::Newest>& newest, const WriteSample& sample);

  /// Waits for the next sample.
  [[nodiscard]] const std::optional<WriteSample>& held() const { return held_; }

 private:
  std::optional<WriteSample> held_;
};

}  // namespace ssdpulse::analysis
