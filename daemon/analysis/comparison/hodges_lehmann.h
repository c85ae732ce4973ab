// SPDX-License-Identifier: Apache-2.0
// The usual minute of one window against that of another. Pure.
#pragma once

#include <optional>
#include <vector>

namespace ssdpulse::analysis::comparison {

/// Hodges and Lehmann: the median of all differences of one of `after` and one of `before`. Nothing of none. At most
/// some four million differences: of longer windows, evenly picked minutes.
std::optional<double> usual_difference(std::vector<double> before, std::vector<double> after);

}  // namespace ssdpulse::analysis::comparison
