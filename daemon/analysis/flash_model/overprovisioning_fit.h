// SPDX-License-Identifier: Apache-2.0
// Which over-provisioning explains what a drive measured of itself?
// The same load runs through miniature drives of several over-provisionings; what the drive measured lies between two
// of them. A wrong policy explains a uniform load as well as the right one, but a skewed one by an over-provisioning
// that is off by a factor of 0.1 to 2.8. So a fit answers what-ifs about the load it was made of; another load it must
// not be asked about.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "daemon/model/flash.h"

namespace ssdpulse::analysis {

/// Over-provisioning is exported and fitted between these; what is not interpolated has this many percent of doubt.
inline constexpr double kInterpolationDoubt = 0.02;

/// One run, in the order of over-provisioning.
struct CurvePoint {
  double overprovisioning;
  model::Estimate estimate;
};

/// A value with bounds.
struct Fitted {
  double likely;
  double lower;
  double upper;
  bool operator==(const Fitted&) const = default;
};

/// Between two points of the curve, which is nearly straight where the over-provisioning at which a uniform load would
/// have that write amplification is drawn over the over-provisioning, both as logarithms; absent beyond its ends. The
/// bounds widen by kInterpolationDoubt between points.
std::optional<model::Estimate> interpolate(std::span<const CurvePoint> curve, double overprovisioning);

/// Which over-provisionings agree with what was measured: 0 or infinity where a bound lies beyond the curve, so that a
/// load under which all drives relocate alike says nothing. `likely` is absent beyond the curve.
struct Explained {
  std::optional<double> likely;
  double lower;
  double upper;
};
Explained explained_by(std::span<const CurvePoint> curve, const model::Estimate& measured);

/// The curve of another policy, of which one point is known: the ratio of the over-provisionings at which a uniform
/// load would have those write amplifications is taken for the same everywhere. That is off by up to 30 % of the
/// over-provisioning where it differs by a factor of e: measured with zipf, hot and cold, and log loads from 4 to 50 %.
std::vector<CurvePoint> through_point(std::span<const CurvePoint> curve, const CurvePoint& on_curve,
                                      const CurvePoint& known);

/// Where the curve passes what was measured. A bound that lies beyond the curve is its end; absent where all of it
/// does.
std::optional<Fitted> fit_overprovisioning(std::span<const CurvePoint> curve, const model::Estimate& measured);

/// Media writes over host writes, less what a drive writes beside data and its relocation: maps, parity, padding.
/// `overhead`: its own ratio under a sequential load, or kUsualOverhead where that was never seen.
inline constexpr Fitted kUsualOverhead{1.04, 1.00, 1.08};
model::Estimate without_overhead(const model::Estimate& measured, const Fitted& overhead);

}  // namespace ssdpulse::analysis
