// SPDX-License-Identifier: Apache-2.0
#include "daemon/analysis/flash_model/overprovisioning_fit.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace ssdpulse::analysis {
namespace {

constexpr double kMinRatio = 1 + 1e-6;  // a write amplification of exactly 1 matches no over-provisioning
constexpr double kMaxRatio = 1e6;

using Bound = double model::Estimate::*;

/// The over-provisioning at which a uniform load would have this write amplification if the oldest block is collected:
/// a share of 1 - 1/A of a block is still valid after alpha/A laps, so alpha = -A ln(1 - 1/A) (Xiang and Kurkoski).
/// Its logarithm is nearly linear in that of the over-provisioning, whatever the load and the policy.
double of_uniform_load(double ratio) {
  const double within = std::clamp(ratio, kMinRatio, kMaxRatio);
  return std::log(-within * std::log1p(-1 / within) - 1);
}

double of_uniform_load(const CurvePoint& point, Bound which) { return of_uniform_load(point.estimate.*which); }

/// The inverse, which has no closed form: by bisection, to the last bits of a double.
double ratio_of(double uniform) {
  double low = kMinRatio;
  double high = kMaxRatio;
  for (int halves = 0; halves < 100; ++halves) {
    const double middle = std::sqrt(low * high);
    (of_uniform_load(middle) > uniform ? low : high) = middle;
  }
  return low;
}

/// Write amplification at that over-provisioning, in this segment.
double along(const CurvePoint& begin, const CurvePoint& end, Bound which, double overprovisioning) {
  const double share =
      std::log(overprovisioning / begin.overprovisioning) / std::log(end.overprovisioning / begin.overprovisioning);
  return ratio_of(std::lerp(of_uniform_load(begin, which), of_uniform_load(end, which), share));
}

enum class Side : std::uint8_t { below, within, beyond };
struct Crossing {
  Side side;
  double overprovisioning;
};

/// The more is spare, the less is relocated: the first segment that falls to the level crosses it.
Crossing crossing(std::span<const CurvePoint> curve, Bound which, double ratio) {
  const double level = of_uniform_load(ratio);
  if (of_uniform_load(curve.front(), which) > level) {
    return {Side::below, curve.front().overprovisioning};
  }
  for (std::size_t i = 1; i < curve.size(); ++i) {
    const double before = of_uniform_load(curve[i - 1], which);
    const double after = of_uniform_load(curve[i], which);
    if (after >= level) {
      const double share = after > before ? (level - before) / (after - before) : 0;
      return {Side::within,
              std::exp(std::lerp(std::log(curve[i - 1].overprovisioning), std::log(curve[i].overprovisioning), share))};
    }
  }
  return {Side::beyond, curve.back().overprovisioning};
}

}  // namespace

std::optional<model::Estimate> interpolate(std::span<const CurvePoint> curve, double overprovisioning) {
  for (std::size_t i = 0; i < curve.size(); ++i) {
    if (curve[i].overprovisioning == overprovisioning) {
      return curve[i].estimate;
    }
    if (i > 0 && curve[i - 1].overprovisioning < overprovisioning && overprovisioning < curve[i].overprovisioning) {
      const auto at = [&](Bound which) { return along(curve[i - 1], curve[i], which, overprovisioning); };
      const double ratio = at(&model::Estimate::ratio);
      return model::Estimate{ratio, std::max(1.0, at(&model::Estimate::lower) - kInterpolationDoubt * ratio),
                             at(&model::Estimate::upper) + kInterpolationDoubt * ratio};
    }
  }
  return std::nullopt;
}

OverprovisioningMatch matching_overprovisioning(std::span<const CurvePoint> curve, const model::Estimate& measured) {
  constexpr double kOpen = std::numeric_limits<double>::infinity();
  if (curve.size() < 2) {
    return {std::nullopt, 0, kOpen};
  }
  const Crossing likely = crossing(curve, &model::Estimate::ratio, measured.ratio);
  const Crossing lower = crossing(curve, &model::Estimate::lower, measured.upper);
  const Crossing upper = crossing(curve, &model::Estimate::upper, measured.lower);
  const bool open = upper.side == Side::beyond || measured.lower <= kMinRatio;  // no drive relocates less
  return {likely.side == Side::within ? std::optional(likely.overprovisioning) : std::nullopt,
          lower.side == Side::below ? 0 : lower.overprovisioning, open ? kOpen : upper.overprovisioning};
}

std::vector<CurvePoint> through_point(std::span<const CurvePoint> curve, const CurvePoint& on_curve,
                                      const CurvePoint& known) {
  std::vector<CurvePoint> result(curve.begin(), curve.end());
  for (CurvePoint& point : result) {
    for (const Bound which : {&model::Estimate::ratio, &model::Estimate::lower, &model::Estimate::upper}) {
      point.estimate.*which =
          ratio_of(of_uniform_load(point, which) + of_uniform_load(known, which) - of_uniform_load(on_curve, which));
    }
  }
  return result;
}

std::optional<BoundedValue> fit_overprovisioning(std::span<const CurvePoint> curve, const model::Estimate& measured) {
  const OverprovisioningMatch found = matching_overprovisioning(curve, measured);
  if (!found.likely) {
    return std::nullopt;
  }
  return BoundedValue{*found.likely, std::max(found.lower, curve.front().overprovisioning),
                      std::min(found.upper, curve.back().overprovisioning)};
}

model::Estimate without_overhead(const model::Estimate& measured) {
  return {std::max(1.0, measured.ratio / kUsualOverhead.likely), std::max(1.0, measured.lower / kUsualOverhead.upper),
          std::max(1.0, measured.upper / kUsualOverhead.lower)};
}

}  // namespace ssdpulse::analysis
