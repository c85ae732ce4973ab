// SPDX-License-Identifier: Apache-2.0
#include "daemon/analysis/flash_model/policy_fit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "daemon/analysis/flash_model/model_curve.h"

namespace ssdpulse::analysis {
namespace {

using model::CollectionPolicy;

constexpr double kOpen = std::numeric_limits<double>::infinity();
constexpr PolicyFit::Range kNothingKnown{0, kOpen, 0};
// The doubt about a curve that was not modelled but shifted through one point (see through_point()), in shares of the
// over-provisioning: near the point, and for each factor of e away from it.
constexpr double kDoubtNear = 0.03;
constexpr double kDoubtAway = 0.3;

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
  const bool explained = std::any_of(all.begin(), all.end(), analysis::possible);
  ranges_ = explained ? all : today;
  return explained;
}

bool PolicyFit::limit(double most_overprovisioning) {
  Ranges limited = ranges_;
  for (Range& range : limited) {
    range.upper = std::min(range.upper, most_overprovisioning);
  }
  const bool explained = std::any_of(limited.begin(), limited.end(), analysis::possible);
  if (!explained) {
    limited.fill({0, most_overprovisioning, 0});
  }
  ranges_ = limited;
  return explained;
}

bool PolicyFit::possible(CollectionPolicy policy) const {
  const std::size_t i = index_of(policy);
  return i < ranges_.size() && analysis::possible(ranges_[i]);
}

std::optional<CollectionPolicy> PolicyFit::policy() const {
  const auto count = std::count_if(ranges_.begin(), ranges_.end(), analysis::possible);
  return count == 1 ? std::optional(best()) : std::nullopt;
}

CollectionPolicy PolicyFit::best() const {
  const auto* const first = std::find_if(ranges_.begin(), ranges_.end(), analysis::possible);
  return possible(kMiddlePolicy) || first == ranges_.end()
             ? kMiddlePolicy
             : kFittedPolicies[static_cast<std::size_t>(first - ranges_.begin())];
}

std::optional<BoundedValue> PolicyFit::fitted(std::size_t policy) const {
  const Range& range = ranges_[policy];
  if (!(range.likely > 0) || !analysis::possible(range)) {
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
    if (analysis::possible(ranges_[i])) {
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

}  // namespace ssdpulse::analysis
