// SPDX-License-Identifier: Apache-2.0
#include "daemon/analysis/comparison/load_classes.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace ssdpulse::analysis::comparison {

namespace {

using Class = std::array<std::size_t, 2>;
constexpr double kMaxClasses = 5;
constexpr double kMinClassRatio = 1.5;
constexpr double kIdle = 65536;  // bytes per second

/// Classes of equal width in logarithms, starting at the lowest rate.
struct Scale {
  double least = 0;  // logarithm, like `width`
  double width = 1;
};
using Scales = std::array<Scale, 2>;

double level(double rate) { return std::log(std::max(rate, kIdle)); }

Scale scale_of(const std::vector<double>& rates) {
  const auto [least, most] = std::minmax_element(rates.begin(), rates.end());
  return {level(*least), std::max(std::log(kMinClassRatio), (level(*most) - level(*least)) / kMaxClasses)};
}

Class class_of(const Rates& rates, const Scales& scales) {
  Class result{};
  for (std::size_t i = 0; i < result.size(); ++i) {
    result[i] = static_cast<std::size_t>((level(rates[i]) - scales[i].least) / scales[i].width);
  }
  return result;
}

std::map<Class, double> shares_of(const std::vector<Rates>& minutes, const Scales& scales) {
  std::map<Class, double> shares;
  for (const Rates& rates : minutes) {
    shares[class_of(rates, scales)] += 1.0 / static_cast<double>(minutes.size());
  }
  return shares;
}

}  // namespace

LoadMatch match_load(const std::vector<Rates>& before, const std::vector<Rates>& after) {
  LoadMatch result;
  if (before.empty() || after.empty()) {
    return result;
  }
  Scales scales;
  for (std::size_t i = 0; i < scales.size(); ++i) {
    std::vector<double> rates;
    for (const auto* window : {&before, &after}) {
      for (const Rates& minute : *window) {
        rates.push_back(minute[i]);
      }
    }
    scales[i] = scale_of(rates);
  }
  const auto shares_before = shares_of(before, scales);
  const auto shares_after = shares_of(after, scales);
  double common_before = 0;
  double common_after = 0;
  for (const auto& [load, share] : shares_before) {
    if (const auto found = shares_after.find(load); found != shares_after.end()) {
      common_before += share;
      common_after += found->second;
    }
  }
  result.common = std::min(common_before, common_after);
  for (const Rates& minute : before) {
    result.before.push_back(shares_after.contains(class_of(minute, scales)) ? 1 : 0);
  }
  for (const Rates& minute : after) {
    const Class load = class_of(minute, scales);
    const auto found = shares_before.find(load);
    result.after.push_back(found == shares_before.end() ? 0 : found->second / shares_after.at(load));
  }
  return result;
}

}  // namespace ssdpulse::analysis::comparison
