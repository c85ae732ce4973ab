// SPDX-License-Identifier: Apache-2.0
#include "daemon/analysis/comparison/hodges_lehmann.h"

#include <algorithm>

namespace ssdpulse::analysis::comparison {

namespace {

constexpr std::size_t kMaxValues = 2000;  // of each side: see the header

std::vector<double> thinned(std::vector<double> values) {
  const std::size_t kept = std::min(values.size(), kMaxValues);
  for (std::size_t i = 0; i < kept; ++i) {
    values[i] = values[i * values.size() / kept];
  }
  values.resize(kept);
  return values;
}

}  // namespace

std::optional<double> hodges_lehmann_shift(std::vector<double> before, std::vector<double> after) {
  before = thinned(std::move(before));
  after = thinned(std::move(after));
  std::vector<double> differences;
  differences.reserve(before.size() * after.size());
  for (const double later : after) {
    for (const double earlier : before) {
      differences.push_back(later - earlier);
    }
  }
  if (differences.empty()) {
    return std::nullopt;
  }
  const auto middle = differences.begin() + static_cast<std::ptrdiff_t>(differences.size() / 2);
  std::nth_element(differences.begin(), middle, differences.end());
  return *middle;
}

}  // namespace ssdpulse::analysis::comparison
