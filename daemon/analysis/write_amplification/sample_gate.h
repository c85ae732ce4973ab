// SPDX-License-Identifier: Apache-2.0
// Can the counters of a sample be true?
// A drive may show one absurd page, and a ledger never forgets what it was told: a fall, or a growth that no drive can
// do in the time, is held until the next sample confirms it. What it does not confirm never was.
#pragma once

#include <optional>
#include <vector>

#include "daemon/analysis/write_amplification/write_ledger.h"

namespace ssdpulse::analysis {

class SampleGate {
 public:
  /// What may be taken for true now, in the order of time: nothing, the sample, or the one held and the sample.
  std::vector<WriteSample> admit(const WriteSample& sample);

  /// A sample waits for the next.
  [[nodiscard]] bool holds() const { return held_.has_value(); }

 private:
  std::optional<WriteSample> last_;  // admitted
  std::optional<WriteSample> held_;
};

}  // namespace ssdpulse::analysis
