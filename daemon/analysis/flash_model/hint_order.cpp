// SPDX-License-Identifier: Apache-2.0
#include "daemon/analysis/flash_model/hint_order.h"

#include <array>

#include "daemon/model/write_details.h"

namespace ssdpulse::analysis {
namespace {

constexpr std::array kDeclared{model::WriteHint::short_lived, model::WriteHint::medium, model::WriteHint::long_lived,
                               model::WriteHint::extreme};

std::optional<LifetimeQuantile> median_of(const Lifetimes& lifetimes, model::WriteHint hint) {
  const auto survival = lifetimes.survival(static_cast<std::uint8_t>(hint));
  return survival.pages >= kMinDistinctPages && survival.ended >= kMinDeaths ? survival.quantile(0.5) : std::nullopt;
}

}  // namespace

std::vector<model::HintOrderViolation> hint_order_violations(const Lifetimes& lifetimes, double drive_bytes) {
  std::vector<model::HintOrderViolation> result;
  if (lifetimes.drive_writes() < kMinObserved) {
    return result;
  }
  std::array<std::optional<LifetimeQuantile>, kDeclared.size()> medians;
  for (std::size_t i = 0; i < kDeclared.size(); ++i) {
    medians[i] = median_of(lifetimes, kDeclared[i]);
  }
  for (std::size_t i = 0; i < kDeclared.size(); ++i) {
    for (std::size_t j = i + 1; j < kDeclared.size(); ++j) {
      const auto& shorter = medians[i];
      const auto& longer = medians[j];
      if (shorter && longer && shorter->lifetime > kMinDisorder * longer->lifetime && shorter->lower > longer->upper) {
        result.push_back({static_cast<std::uint8_t>(kDeclared[i]), static_cast<std::uint8_t>(kDeclared[j]),
                          shorter->lifetime * drive_bytes, longer->lifetime * drive_bytes});
      }
    }
  }
  return result;
}

}  // namespace ssdpulse::analysis
