// SPDX-License-Identifier: Apache-2.0
// The plain Prometheus text page: format 0.0.4, classic histograms, by prometheus-cpp's serializer.
#pragma once

#include <string>
#include <vector>

#include "exporters/prometheus/family.h"

namespace ssdpulse::exposition {

inline constexpr const char* kTextContentType = "text/plain; version=0.0.4; charset=utf-8";

/// Doubles are written with 16 significant digits.
std::string render_text(const std::vector<Family>& families);

}  // namespace ssdpulse::exposition
