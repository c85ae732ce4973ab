// SPDX-License-Identifier: Apache-2.0
// Student's distribution: how far off a mean of few values can be. Pure.
#pragma once

namespace ssdpulse::analysis::comparison {

/// Probability of a value beyond t, on that side; t >= 0, degrees of freedom > 0.
double student_tail(double t, double degrees);

/// The t beyond which the probability is `tail`, 0 < tail <= 0.5.
double student_quantile(double tail, double degrees);

}  // namespace ssdpulse::analysis::comparison
