// SPDX-License-Identifier: Apache-2.0
#include "daemon/analysis/comparison/student.h"

#include <cmath>

namespace ssdpulse::analysis::comparison {

namespace {

double away_from_zero(double value) {
  constexpr double kTiny = 1e-300;
  return std::fabs(value) < kTiny ? kTiny : value;
}

/// The continued fraction of the incomplete beta function (Lentz), for x < (a + 1) / (a + b + 2).
double beta_fraction(double a, double b, double x) {
  constexpr int kMaxSteps = 500;
  constexpr double kPrecision = 1e-14;
  double numerator = 1;
  double denominator = 1 / away_from_zero(1 - (a + b) * x / (a + 1));
  double fraction = denominator;
  for (int m = 1; m <= kMaxSteps; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    denominator = 1 / away_from_zero(1 + even * denominator);
    numerator = away_from_zero(1 + even / numerator);
    fraction *= denominator * numerator;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    denominator = 1 / away_from_zero(1 + odd * denominator);
    numerator = away_from_zero(1 + odd / numerator);
    fraction *= denominator * numerator;
    if (std::fabs(denominator * numerator - 1) < kPrecision) {
      break;
    }
  }
  return fraction;
}

double incomplete_beta(double a, double b, double x) {
  const double front =
      std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log1p(-x));
  return x < (a + 1) / (a + b + 2) ? front * beta_fraction(a, b, x) / a : 1 - front * beta_fraction(b, a, 1 - x) / b;
}

}  // namespace

double student_tail(double t, double degrees) {
  if (t <= 0) {
    return 0.5;
  }
  return std::isfinite(t) ? incomplete_beta(degrees / 2, 0.5, degrees / (degrees + t * t)) / 2 : 0;
}

double student_quantile(double tail, double degrees) {
  double low = 0;
  double high = 1;
  while (student_tail(high, degrees) > tail && high < 1e9) {
    high *= 2;
  }
  for (int i = 0; i < 80; ++i) {
    const double middle = (low + high) / 2;
    (student_tail(middle, degrees) > tail ? low : high) = middle;
  }
  return (low + high) / 2;
}

}  // namespace ssdpulse::analysis::comparison
