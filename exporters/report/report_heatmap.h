// SPDX-License-Identifier: Apache-2.0
// HeatScale: the scale of a window's picture: latency over time, the colour shows I/Os per minute. Only for the files
// of this folder. Three states that never look alike: none (background), a time that was not measured (hatched), out of
// range (rows of their own at the top and the bottom).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "exporters/report/report_forms.h"

namespace ssdpulse::report {

/// One scale for both windows: buckets from `first` to `last`, `merged` of them per row.
struct HeatScale {
  std::size_t first = 0;
  std::size_t last = 0;
  std::size_t merged = 1;
  double max_rate = 0;  // I/Os per minute in one cell

  [[nodiscard]] std::size_t rows() const { return (last - first) / merged + 1; }
};

/// Nothing if neither has an I/O.
std::optional<HeatScale> heat_scale(const std::vector<const compare::Side*>& sides, model::Latency latency);

/// An <svg> that needs nothing from outside.
std::string heatmap_svg(const compare::Side& side, model::Latency latency, const HeatScale& scale,
                        const std::string& label);

/// What the colours mean.
std::string heat_key_svg(const HeatScale& scale);

}  // namespace ssdpulse::report
