// SPDX-License-Identifier: Apache-2.0
// hodges_lehmann_shift(): by how much a usual minute of one window exceeds one of another, whatever a few extreme
// minutes were. Pure; any thread.
#pragma once

#include <optional>
#include <vector>

namespace ssdpulse::analysis::comparison {

/// The Hodges-Lehmann estimator: the median of all differences, a value of `after` less one of `before`, in their unit;
/// of an even number of differences the upper of the two middle ones. Absent if either is empty. Of more than 2000
/// values, evenly spaced ones are compared, so that there are at most four million differences (32 MB).
std::optional<double> hodges_lehmann_shift(std::vector<double> before, std::vector<double> after);

}  // namespace ssdpulse::analysis::comparison
