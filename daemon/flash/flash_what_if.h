// SPDX-License-Identifier: Apache-2.0
// what_if(): what a drive would relocate, and how long it would live, if it had more spare flash, ignored discards, or
// separated data with different hints. The answer of `ssdpulse what-if`, from what its model reports for its current
// load; never for another load.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/model/flash_values.h"
#include "daemon/model/snapshot.h"

namespace ssdpulse::flash {

struct WhatIfQuestion {
  std::vector<double> overprovisioning{0.07, 0.12, 0.28, 0.50};  // shares
  std::optional<model::FlashWindow> window;                      // absent: the shortest that is known
};

/// The shares in "7,12.5,28": percents from 0.1 to 1000, at most kMaxPercents. Nothing if it is not such a list.
inline constexpr std::size_t kMaxPercents = 16;
std::optional<std::vector<double>> percents_in(std::string_view text);

/// Seconds until the rated endurance is used up.
struct WhatIfLife {
  double seconds;
  double lower;
  double upper;
};

struct WhatIfRow {
  model::WhatIf what;
  model::Estimate estimate;
  bool interpolated = false;       // between modelled values: within the bounds, which are 2 % wider
  std::optional<WhatIfLife> life;  // if the host keeps writing like this
};

struct WhatIfAnswer {
  std::string text;                            // the estimate of the drive as it is, or why there is none
  std::optional<model::FlashSilence> silence;  // then there are no rows
  model::FlashWindow window = model::FlashWindow::day;
  std::optional<model::Estimate> likely;
  std::optional<model::WriteAmplificationRatio> measured;  // by the drive's own counter: 7d or 24h, else lifetime
  std::optional<double> life_seconds;                      // from the wear that the drive reports
  std::vector<WhatIfRow> rows;
  std::vector<std::string> assumptions;
  std::vector<double> beyond;  // over-provisioning that was asked for and is outside what is modelled
};

/// Null: the models are turned off, or the disk has not been examined yet.
const model::FlashEstimate* estimate_of(const model::Snapshot& snapshot, const std::string& device);

WhatIfAnswer what_if(const model::Snapshot& snapshot, const model::FlashEstimate& drive,
                     const WhatIfQuestion& question);

/// As in "modelled 2.4 (1.9 to 3.1), 12 % spare assumed", for the shortest window that is known.
std::string amplification_text(const model::FlashEstimate& drive);
std::string amplification_text(const model::FlashEstimate& drive, model::FlashWindow window);

}  // namespace ssdpulse::flash
