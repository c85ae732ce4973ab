// SPDX-License-Identifier: Apache-2.0
// What would a drive relocate, and how long would it live, if it had more spare flash, ignored discards, or kept apart
// what carries different hints? The answer of `ssdpulse what-if`, from what its model says of the load it has now;
// never of another load.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/model/flash_estimate.h"
#include "daemon/model/snapshot.h"

namespace ssdpulse::live {

struct WhatIfQuestion {
  std::vector<double> overprovisioning{0.07, 0.12, 0.28, 0.50};
  std::optional<model::FlashWindow> window;  // nothing: the shortest that is known
};

/// Shares of "7,12.5,28": percents of 0.1 to 1000, kMostPercents at most. Nothing: it is no such list.
inline constexpr std::size_t kMostPercents = 16;
std::optional<std::vector<double>> percents_in(std::string_view text);

struct WhatIfRow {
  model::WhatIf what;
  model::Estimate estimate;
  bool interpolated = false;                    // between what was modelled: within the bounds, which are wider by 2 %
  std::optional<model::Estimate> life_seconds;  // if the host writes as it does
};

struct WhatIfAnswer {
  std::string words;                           // the estimate of the drive as it is, or why there is none
  std::optional<model::FlashSilence> silence;  // then there are no rows
  model::FlashWindow window = model::FlashWindow::day;
  std::optional<model::Estimate> likely;
  std::optional<model::WriteAmplificationRatio> measured;  // by the drive's own counter, of about that window
  std::optional<double> life_seconds;                      // as the drive reports its wear
  std::vector<WhatIfRow> rows;
  std::vector<std::string> assumptions;
  std::vector<double> beyond;  // over-provisioning that was asked for and is not modelled
};

/// Null: the models are turned off, or the disk has not been looked at yet.
const model::FlashEstimate* estimate_of(const model::Snapshot& snapshot, const std::string& device);

WhatIfAnswer what_if(const model::Snapshot& snapshot, const model::FlashEstimate& drive,
                     const WhatIfQuestion& question);

/// As in "modelled 2.4 (1.9 to 3.1), 12 % spare assumed", of the shortest window that is known.
std::string flash_words(const model::FlashEstimate& drive);
std::string flash_words(const model::FlashEstimate& drive, model::FlashWindow window);

}  // namespace ssdpulse::live
