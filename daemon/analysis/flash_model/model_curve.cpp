// SPDX-License-Identifier: Apache-2.0
#include "daemon/analysis/flash_model/model_curve.h"

#include <algorithm>

namespace ssdpulse::analysis {
std::vector<CurvePoint> curve_of(const model::FlashReport& report, model::FlashWindow window) {
  std::vector<CurvePoint> result;
  for (const model::ModelledAmplification& found : report.amplification) {
    const model::WhatIf& what = found.what_if;
    if (found.window == window && what == model::WhatIf{what.overprovisioning, kMiddlePolicy}) {
      result.push_back({what.overprovisioning, found.estimate});
    }
  }
  std::sort(result.begin(), result.end(),
            [](const CurvePoint& a, const CurvePoint& b) { return a.overprovisioning < b.overprovisioning; });
  return result;
}

std::optional<model::Estimate> at_overprovisioning(std::span<const CurvePoint> curve,
                                                   const BoundedValue& overprovisioning) {
  auto result = interpolate(curve, overprovisioning.likely);
  if (!result) {
    return std::nullopt;
  }
  // More spare flash means less relocation. A bound beyond the curve is the one at its end.
  const auto at = [curve](double value) {
    return interpolate(curve, std::clamp(value, curve.front().overprovisioning, curve.back().overprovisioning));
  };
  const auto least = at(overprovisioning.upper);
  const auto most = at(overprovisioning.lower);
  result->lower = least ? std::min(result->lower, least->lower) : result->lower;
  result->upper = most ? std::max(result->upper, most->upper) : result->upper;
  return result;
}

std::optional<model::Estimate> band_of_policies(const model::FlashReport& report, model::FlashWindow window) {
  std::optional<model::Estimate> result;
  std::optional<model::WhatIf> base;
  for (const model::ModelledAmplification& found : report.amplification) {
    if (found.window != window) {
      continue;
    }
    if (!base) {
      base = found.what_if;
      result = found.estimate;
    }
    model::WhatIf same = found.what_if;
    same.policy = base->policy;
    if (same == *base) {
      result->lower = std::min(result->lower, found.estimate.lower);
      result->upper = std::max(result->upper, found.estimate.upper);
    }
  }
  return result;
}

}  // namespace ssdpulse::analysis
