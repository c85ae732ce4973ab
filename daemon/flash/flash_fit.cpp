// SPDX-License-Identifier: Apache-2.0
#include "daemon/flash/flash_fit.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace ssdpulse::flash {
namespace {

using model::CollectionPolicy;

constexpr double kMinRatio = 1 + 1e-6;  // a write amplification of exactly 1 matches no over-provisioning
constexpr double kMaxRatio = 1e6;

constexpr double kOpen = std::numeric_limits<double>::infinity();
constexpr PolicyFit::Range kNothingKnown{0, kOpen, 0};
// The doubt about a curve that was not modelled but shifted through one point (see through_point()), in shares of the
// over-provisioning: near the point, and for each factor of e away from it.
constexpr double kDoubtNear = 0.03;
constexpr double kDoubtAway = 0.3;

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

struct PolicyCurve {
  std::vector<CurvePoint> points;
  std::optional<double> known;  // the one over-provisioning that was modelled; absent: all were
};

/// Empty if the policy or the curve was not modelled.
PolicyCurve curve_of_policy(const model::FlashReport& report, model::FlashWindow window, CollectionPolicy policy) {
  auto middle = curve_of(report, window);
  if (policy == kMiddlePolicy) {
    return {std::move(middle), std::nullopt};
  }
  for (const model::ModelledAmplification& found : report.amplification) {
    const double at = found.what_if.overprovisioning;
    const auto same = std::find_if(middle.begin(), middle.end(),
                                   [at](const CurvePoint& point) { return point.overprovisioning == at; });
    if (found.window == window && found.what_if == model::WhatIf{at, policy} && same != middle.end()) {
      return {through_point(middle, *same, {at, found.estimate}), at};
    }
  }
  return {};
}

double doubt(const PolicyCurve& curve, double overprovisioning) {
  return curve.known && overprovisioning > 0 && std::isfinite(overprovisioning)
             ? 1 + kDoubtNear + kDoubtAway * std::abs(std::log(overprovisioning / *curve.known))
             : 1;
}

PolicyFit::Range explain(const PolicyCurve& curve, const model::Estimate& measured) {
  const OverprovisioningMatch found = matching_overprovisioning(curve.points, measured);
  return {found.lower / doubt(curve, found.lower), found.upper * doubt(curve, found.upper), found.likely.value_or(0)};
}

PolicyFit::Range both(const PolicyFit::Range& before, const PolicyFit::Range& today) {
  return {std::max(before.lower * (1 - PolicyFit::kForgotten), today.lower),
          std::min(before.upper * (1 + PolicyFit::kForgotten), today.upper),
          today.likely > 0 ? today.likely : before.likely};
}

bool possible(const PolicyFit::Range& range) { return range.lower <= range.upper * (1 + PolicyFit::kSlack); }

std::size_t index_of(CollectionPolicy policy) {
  return static_cast<std::size_t>(std::find(kFittedPolicies.begin(), kFittedPolicies.end(), policy) -
                                  kFittedPolicies.begin());
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
  const auto at_upper = at(overprovisioning.upper);
  const auto at_lower = at(overprovisioning.lower);
  result->lower = at_upper ? std::min(result->lower, at_upper->lower) : result->lower;
  result->upper = at_lower ? std::max(result->upper, at_lower->upper) : result->upper;
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

PolicyFit::PolicyFit() { ranges_.fill(kNothingKnown); }

bool PolicyFit::add(const model::FlashReport& report, model::FlashWindow window, const model::Estimate& measured) {
  if (measured.ratio < kMinRelocated) {
    return true;
  }
  Ranges today;
  Ranges all;
  for (std::size_t i = 0; i < all.size(); ++i) {
    today[i] = explain(curve_of_policy(report, window, kFittedPolicies[i]), measured);
    all[i] = both(ranges_[i], today[i]);
  }
  const bool explained = std::any_of(all.begin(), all.end(), flash::possible);
  ranges_ = explained ? all : today;
  return explained;
}

bool PolicyFit::limit(double max_overprovisioning) {
  Ranges limited = ranges_;
  for (Range& range : limited) {
    range.upper = std::min(range.upper, max_overprovisioning);
  }
  const bool explained = std::any_of(limited.begin(), limited.end(), flash::possible);
  if (!explained) {
    limited.fill({0, max_overprovisioning, 0});
  }
  ranges_ = limited;
  return explained;
}

bool PolicyFit::possible(CollectionPolicy policy) const {
  const std::size_t i = index_of(policy);
  return i < ranges_.size() && flash::possible(ranges_[i]);
}

std::optional<CollectionPolicy> PolicyFit::policy() const {
  const auto count = std::count_if(ranges_.begin(), ranges_.end(), flash::possible);
  return count == 1 ? std::optional(best()) : std::nullopt;
}

CollectionPolicy PolicyFit::best() const {
  const auto* const first = std::find_if(ranges_.begin(), ranges_.end(), flash::possible);
  return possible(kMiddlePolicy) || first == ranges_.end()
             ? kMiddlePolicy
             : kFittedPolicies[static_cast<std::size_t>(first - ranges_.begin())];
}

std::optional<BoundedValue> PolicyFit::fitted(std::size_t policy) const {
  const Range& range = ranges_[policy];
  if (!(range.likely > 0) || !flash::possible(range)) {
    return std::nullopt;
  }
  // Within the slack the bounds may have crossed: then everything between them is equally likely.
  const double lower = std::min({range.lower, range.upper, kMaxOverprovisioning});
  const double upper = std::min(std::max(range.lower, range.upper), kMaxOverprovisioning);
  return BoundedValue{std::clamp(range.likely, lower, upper), lower, upper};
}

std::optional<BoundedValue> PolicyFit::overprovisioning() const {
  auto result = fitted(index_of(best()));
  for (std::size_t i = 0; result && i < ranges_.size(); ++i) {
    if (flash::possible(ranges_[i])) {
      result->lower = std::min({result->lower, ranges_[i].lower, kMaxOverprovisioning});
      result->upper = std::min(std::max(result->upper, ranges_[i].upper), kMaxOverprovisioning);
    }
  }
  return result;
}

std::optional<model::Estimate> PolicyFit::estimate(const model::FlashReport& report, model::FlashWindow window) const {
  const auto at = [&](std::size_t policy) -> std::optional<model::Estimate> {
    const auto spare = fitted(policy);
    return spare ? at_overprovisioning(curve_of_policy(report, window, kFittedPolicies[policy]).points, *spare)
                 : std::nullopt;
  };
  auto result = at(index_of(best()));
  for (std::size_t i = 0; result && i < ranges_.size(); ++i) {
    if (const auto other = at(i)) {
      result->lower = std::min(result->lower, other->lower);
      result->upper = std::max(result->upper, other->upper);
    }
  }
  return result;
}

std::optional<double> CollectionWatch::observe(std::optional<double> since_discard, const Counters& now,
                                               double drive_bytes) {
  const auto [host, media, host_doubt, media_doubt] = now;
  if (!since_discard || host < state_.host || media < state_.media) {
    state_ = {};  // nothing was discarded, or the counters were reset
    return std::nullopt;
  }
  if (*since_discard <= kLatest * drive_bytes) {
    state_ = {host, media, host, media, 0};
    return std::nullopt;
  }
  const double step = host - state_.host;
  if (state_.host_then < 0 || step < kStep * drive_bytes) {
    return std::nullopt;
  }
  const double min_ratio = (media - state_.media - media_doubt) / (step + host_doubt);
  const double written = (host - state_.host_then) / drive_bytes;
  state_.host = host;
  state_.media = media;
  if (written <= 1) {
    state_.free_ratio =
        (media - state_.media_then + media_doubt) / std::max(host - state_.host_then - host_doubt, 0.5 * step);
    return std::nullopt;
  }
  const bool costs = state_.free_ratio > 0 && min_ratio > state_.free_ratio + kCost;
  if (costs || written > kMaxDriveWrites) {
    state_ = {};
  }
  return costs ? std::optional(written - 1 + kLatest) : std::nullopt;
}

}  // namespace ssdpulse::flash
