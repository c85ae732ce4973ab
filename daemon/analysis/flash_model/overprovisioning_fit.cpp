// SPDX-License-Identifier: Apache-2.0
#include "daemon/analysis/flash_model/overprovisioning_fit.h"

#include <algorithm>
#include <cmath>

namespace ssdpulse::analysis {
namespace {

constexpr double kLeastExcess = 1e-6;  // a write amplification of exactly 1 has no logarithm
constexpr double kCliffDoubt = 0.02;

using Bound = double model::Estimate::*;

double excess(const CurvePoint& point, Bound which) {
  return std::log(std::max(point.estimate.*which - 1, kLeastExcess));
}

/// ln(WAF - 1) at that over-provisioning, in this segment.
double along(const CurvePoint& begin, const CurvePoint& end, Bound which, double overprovisioning) {
  const double share =
      std::log(overprovisioning / begin.overprovisioning) / std::log(end.overprovisioning / begin.overprovisioning);
  return std::lerp(excess(begin, which), excess(end, which), share);
}

enum class Side : std::uint8_t { below, within, beyond };
struct Crossing {
  Side side;
  double overprovisioning;
};

/// The more is spare, the less is relocated: the first segment that falls to the level has it.
Crossing crossing(std::span<const CurvePoint> curve, Bound which, double ratio) {
  const double level = std::log(std::max(ratio - 1, kLeastExcess));
  if (excess(curve.front(), which) < level) {
    return {Side::below, curve.front().overprovisioning};
  }
  for (std::size_t i = 1; i < curve.size(); ++i) {
    const double before = excess(curve[i - 1], which);
    const double after = excess(curve[i], which);
    if (after <= level) {
      const double share = before > after ? (before - level) / (before - after) : 0;
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
      const auto at = [&](Bound which) { return 1 + std::exp(along(curve[i - 1], curve[i], which, overprovisioning)); };
      const double ratio = at(&model::Estimate::ratio);
      return model::Estimate{ratio, std::max(1.0, at(&model::Estimate::lower) - kInterpolationDoubt * ratio),
                             at(&model::Estimate::upper) + kInterpolationDoubt * ratio};
    }
  }
  return std::nullopt;
}

std::optional<Fitted> fit_overprovisioning(std::span<const CurvePoint> curve, const model::Estimate& measured) {
  if (curve.size() < 2) {
    return std::nullopt;
  }
  const Crossing likely = crossing(curve, &model::Estimate::ratio, measured.ratio);
  if (likely.side != Side::within) {
    return std::nullopt;
  }
  return Fitted{likely.overprovisioning, crossing(curve, &model::Estimate::lower, measured.upper).overprovisioning,
                crossing(curve, &model::Estimate::upper, measured.lower).overprovisioning};
}

model::Estimate without_overhead(const model::Estimate& measured, const Fitted& overhead) {
  return {std::max(1.0, measured.ratio / overhead.likely), std::max(1.0, measured.lower / overhead.upper),
          std::max(1.0, measured.upper / overhead.lower)};
}

Fitted overprovisioning_at_cliff(std::uint64_t host_bytes_until_collection, std::uint64_t drive_bytes) {
  const double all = static_cast<double>(host_bytes_until_collection) / static_cast<double>(drive_bytes);
  return {all - 1, all * (1 - kCliffDoubt) - 1, all * (1 + kCliffDoubt) - 1};
}

std::optional<PolicyFit> fit_policy(std::span<const PolicyEvidence> evidence) {
  std::optional<PolicyFit> result;
  for (const auto& [policy, fits] : evidence) {
    if (fits.empty()) {
      continue;
    }
    Fitted common = fits[0];
    double sum = 0;
    for (const Fitted& fit : fits) {
      common.lower = std::max(common.lower, fit.lower);
      common.upper = std::min(common.upper, fit.upper);
      sum += std::log(fit.likely);
    }
    if (common.lower > common.upper) {
      continue;
    }
    common.likely = std::clamp(std::exp(sum / static_cast<double>(fits.size())), common.lower, common.upper);
    if (!result) {
      result = PolicyFit{{policy}, common};
    } else {
      result->possible.push_back(policy);
      auto& band = result->overprovisioning;
      band.lower = std::min(band.lower, common.lower);
      band.upper = std::max(band.upper, common.upper);
    }
  }
  return result;
}

}  // namespace ssdpulse::analysis
