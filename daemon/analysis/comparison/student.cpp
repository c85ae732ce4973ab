// SPDX-License-Identifier: Apache-2.0
#include "daemon/analysis/comparison/student.h"

#include <cmath>

namespace ssdpulse::analysis::comparison {
namespace {

/// A value to divide by: Lentz's method needs only that it is not 0.
double away_from_zero(double value) {
  constexpr double kTiny = 1e-300;
  return std::fabs(value) < kTiny ? kTiny : value;
}

/// The continued fraction of the incomplete beta function (DLMF 8.17.22) by the modified method of Lentz; converges
/// quickly for x < (a + 1) / (a + b + 2).
double beta_fraction(double a, double b, double x) {
  constexpr int kMaxSteps = 500;  // beyond that the result is as good as the steps so far
  constexpr double kPrecision = 1e-14;
  double c = 1;                                              // ratio of successive numerators
  double d = 1 / away_from_zero(1 - (a + b) * x / (a + 1));  // ratio of successive denominators, inverted
  double fraction = d;
  for (int m = 1; m <= kMaxSteps; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / away_from_zero(1 + even * d);
    c = away_from_zero(1 + even / c);
    fraction *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / away_from_zero(1 + odd * d);
    c = away_from_zero(1 + odd / c);
    fraction *= d * c;
    if (std::fabs(d * c - 1) < kPrecision) {
      break;
    }
  }
  return fraction;
}

/// I_x(a, b), 0 < x < 1. The fraction converges slowly beyond the mean: there by symmetry, 1 - I_(1-x)(b, a).
double regularized_incomplete_beta(double a, double b, double x) {
  const double front =
      std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log1p(-x));
  return x < (a + 1) / (a + b + 2) ? front * beta_fraction(a, b, x) / a : 1 - front * beta_fraction(b, a, 1 - x) / b;
}

}  // namespace

double student_tail(double t, double degrees_of_freedom) {
  if (t <= 0) {
    return 0.5;
  }
  return std::isfinite(t) ? regularized_incomplete_beta(degrees_of_freedom / 2, 0.5,
                                                        degrees_of_freedom / (degrees_of_freedom + t * t)) /
                                2
                          : 0;
}

double student_quantile(double tail, double degrees_of_freedom) {
  constexpr double kMaxQuantile = 1e9;  // with one degree of freedom, a tail of 3e-10
  constexpr int kHalvings = 80;         // more than a double can tell apart
  double low = 0;
  double high = 1;
  while (student_tail(high, degrees_of_freedom) > tail && high < kMaxQuantile) {
    high *= 2;
  }
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (student_tail(middle, degrees_of_freedom) > tail ? low : high) = middle;
  }
  return (low + high) / 2;
}

}  // namespace ssdpulse::analysis::comparison
