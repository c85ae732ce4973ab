// SPDX-License-Identifier: Apache-2.0
// Functions that find the over-provisioning that explains what a drive measured about itself.
// The same load runs through miniature drives with several over-provisionings; what the drive measured lies between two
// of them. A wrong policy explains a uniform load as well as the right one does, but a skewed one only with an
// over-provisioning that is off by a factor of 0.1 to 2.8. So a fit is valid only for the load it was made from.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "daemon/model/flash.h"

namespace ssdpulse::analysis {

/// Doubt about an interpolated value, as a share of the write amplification.
inline constexpr double kInterpolationDoubt = 0.02;

/// One run; curves are in the order of over-provisioning.
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

/// Interpolates between two points of the curve; absent beyond its ends. The curve is nearly straight if the
/// over-provisioning at which a uniform load would have that write amplification is plotted against the
/// over-provisioning, both as logarithms. The bounds widen by kInterpolationDoubt between points.
std::optional<model::Estimate> interpolate(std::span<const CurvePoint> curve, double overprovisioning);

/// Which over-provisionings agree with what was measured: 0 or infinity if a bound lies beyond the curve, so that a
/// load under which all drives relocate the same says nothing. `likely` is absent beyond the curve.
struct Explained {
  std::optional<double> likely;
  double lower;
  double upper;
};
Explained explained_by(std::span<const CurvePoint> curve, const model::Estimate& measured);

/// The curve of another policy of which one point is known: the ratio of the over-provisionings at which a uniform load
/// would have those write amplifications is assumed to be the same everywhere. That is off by up to 30 % of the
/// over-provisioning at a factor of e from that point: measured with zipf, hot and cold, and log loads from 4 to 50 %.
std::vector<CurvePoint> through_point(std::span<const CurvePoint> curve, const CurvePoint& on_curve,
                                      const CurvePoint& known);

/// Where the curve passes what was measured. A bound beyond the curve is set to its end; absent if the likely value is
/// beyond.
std::optional<Fitted> fit_overprovisioning(std::span<const CurvePoint> curve, const model::Estimate& measured);

/// Media writes over host writes, without what a drive writes in addition to data and its relocation: maps, parity,
/// padding. `overhead`: its own ratio under a sequential load, or kUsualOverhead if that was never seen.
inline constexpr Fitted kUsualOverhead{1.04, 1.00, 1.08};
model::Estimate without_overhead(const model::Estimate& measured, const Fitted& overhead);

}  // namespace ssdpulse::analysis
