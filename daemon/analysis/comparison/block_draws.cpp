// SPDX-License-Identifier: Apache-2.0
#include "daemon/analysis/comparison/block_draws.h"

#include <algorithm>
#include <random>

namespace ssdpulse::analysis::comparison {

namespace {

void add(std::vector<double>& sum, const double* more) {
  for (std::size_t i = 0; i < sum.size(); ++i) {
    sum[i] += more[i];
  }
}

}  // namespace

std::vector<double> MinuteSums::total() const {
  std::vector<double> sum(width);
  for (std::size_t i = 0; i < minutes(); ++i) {
    add(sum, minute(i).data());
  }
  return sum;
}

BlockDraws::BlockDraws(const MinuteSums& sums, std::size_t block)
    : width_(sums.width),
      minutes_(sums.minutes()),
      block_(std::clamp<std::size_t>(block, 1, std::max<std::size_t>(1, minutes_))) {
  rest_ = minutes_ % block_;
  add_up(of_block_, sums, block_);
  add_up(of_rest_, sums, rest_);
}

void BlockDraws::add_up(std::vector<double>& starts, const MinuteSums& sums, std::size_t length) const {
  if (length == 0) {
    return;
  }
  starts.resize(minutes_ * width_);
  std::vector<double> sum(width_);
  for (std::size_t start = 0; start < minutes_; ++start) {
    // Each from scratch: a running sum would keep its rounding errors.
    std::fill(sum.begin(), sum.end(), 0.0);
    for (std::size_t i = 0; i < length; ++i) {
      add(sum, sums.minute((start + i) % minutes_).data());
    }
    std::copy(sum.begin(), sum.end(), starts.begin() + static_cast<std::ptrdiff_t>(start * width_));
  }
}

void BlockDraws::draw(std::size_t draws, std::uint64_t seed, const Use& use) const {
  if (minutes_ == 0) {
    return;
  }
  std::mt19937_64 random(seed);
  // Not std::uniform_int_distribution, whose numbers differ between libraries. The bias is below one in a million.
  const auto any_minute = [&] { return static_cast<std::size_t>((random() >> 32U) * minutes_ >> 32U); };
  std::vector<double> sum(width_);
  for (std::size_t drawn = 0; drawn < draws; ++drawn) {
    std::fill(sum.begin(), sum.end(), 0.0);
    for (std::size_t i = 0; i < minutes_ / block_; ++i) {
      add(sum, &of_block_[any_minute() * width_]);
    }
    if (rest_ != 0) {
      add(sum, &of_rest_[any_minute() * width_]);
    }
    use(sum);
  }
}

}  // namespace ssdpulse::analysis::comparison
