// SPDX-License-Identifier: Apache-2.0
// Functions that find the over-provisioning that explains what a drive measured about itself.
// The same load runs through miniature drives with several over-provisionings; what the drive measured lies between two
// of them. A wrong policy explains a uniform load as well as the right one does, but a skewed one only with an
// over-provisioning that is off by a factor of 0.1 to 2.8 (deploy/docs/flash-model.md, "The fit"). So a fit is valid
// only for the load it was made from. Over-provisionings are ratios as in model::WhatIf: 0.12 = 12 %. Pure; any thread.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "daemon/model/flash.h"

namespace ssdpulse::analysis {

/// Doubt about an interpolated value, as a share of the write amplification: at 7, 12, 28 and 50 %, the curve of a
/// uniform load stays within it of the exact value (unit.flash_fit_test).
inline constexpr double kInterpolationDoubt = 0.02;

/// What one miniature drive relocated. A curve is a series of them, with rising over-provisioning.
struct CurvePoint {
  double overprovisioning;
  model::Estimate estimate;
};

/// A number that is known up to some doubt: an over-provisioning, or a ratio of bytes. `lower` <= `likely` <= `upper`.
struct BoundedValue {
  double likely;
  double lower;
  double upper;
  bool operator==(const BoundedValue&) const = default;
};

/// Interpolates between two points of the curve; absent beyond its ends. The curve is nearly straight if the
/// over-provisioning at which a uniform load would have that write amplification is plotted against the
/// over-provisioning, both as logarithms. The bounds widen by kInterpolationDoubt between points.
std::optional<model::Estimate> interpolate(std::span<const CurvePoint> curve, double overprovisioning);

/// Over-provisionings that agree with a measurement.
struct OverprovisioningMatch {
  std::optional<double> likely;  // absent beyond the curve
  double lower;                  // 0: the bound lies before the curve
  double upper;                  // infinity: it lies beyond the curve
};

/// Where the curve has the write amplification that was measured. Where all drives relocate about the same (a
/// sequential load), and of a curve of fewer than two points, that is anything from 0 to infinity.
OverprovisioningMatch matching_overprovisioning(std::span<const CurvePoint> curve, const model::Estimate& measured);

/// The curve of another policy, of which only the point `known` was modelled. `on_curve`: the point of `curve` at the
/// same over-provisioning. The ratio of the over-provisionings at which a uniform load would have those two write
/// amplifications is assumed to be the same everywhere. That is off by up to 30 % of the over-provisioning at a factor
/// of e from that point: measured with zipf, hot and cold, and log loads from 4 to 50 %.
std::vector<CurvePoint> through_point(std::span<const CurvePoint> curve, const CurvePoint& on_curve,
                                      const CurvePoint& known);

/// Like matching_overprovisioning(), for showing: a bound beyond the curve is set to its end. Absent if the likely
/// value is beyond.
std::optional<BoundedValue> fit_overprovisioning(std::span<const CurvePoint> curve, const model::Estimate& measured);

/// Media writes over host writes of a drive that relocates nothing: maps, parity and padding. Two drives whose counters
/// were published have 1.035 and 1.06 (deploy/docs/flash-model.md).
inline constexpr BoundedValue kUsualOverhead{1.04, 1.00, 1.08};

/// The write amplification without kUsualOverhead; at least 1.
model::Estimate without_overhead(const model::Estimate& measured);

}  // namespace ssdpulse::analysis
