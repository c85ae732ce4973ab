// SPDX-License-Identifier: Apache-2.0
// The usual minute of one window compared with that of another. Pure.
#pragma once

#include <optional>
#include <vector>

namespace ssdpulse::analysis::comparison {

/// Hodges and Lehmann: the median of all differences between a value of `after` and one of `before`. Absent if there
/// are none. At most some four million differences: longer windows are represented by evenly spaced minutes.
std::optional<double> usual_difference(std::vector<double> before, std::vector<double> after);

}  // namespace ssdpulse::analysis::comparison
