// SPDX-License-Identifier: Apache-2.0
// The plain Prometheus text page: format 0.0.4, classic histograms; prometheus-cpp writes all else.
#pragma once

#include <string>
#include <vector>

#include "exporters/prometheus/family.h"

namespace ssdpulse::exposition {

inline constexpr const char* kTextContentType = "text/plain; version=0.0.4; charset=utf-8";

/// Doubles are written with 16 significant digits, those of histograms with as many as needed.
std::string render_text(const std::vector<Family>& families);

}  // namespace ssdpulse::exposition
