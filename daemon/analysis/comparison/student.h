// SPDX-License-Identifier: Apache-2.0
// Student's distribution: how far off a mean of few values can be. Pure.
#pragma once

namespace ssdpulse::analysis::comparison {

/// Probability of a value beyond t, on that side only: 0.5 down to 0. t >= 0; degrees_of_freedom > 0, also fractional.
double student_tail(double t, double degrees_of_freedom);

/// The t beyond which the probability is `tail`, 0 < tail <= 0.5. At most about 1e9.
double student_quantile(double tail, double degrees_of_freedom);

}  // namespace ssdpulse::analysis::comparison
