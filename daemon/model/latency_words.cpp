// SPDX-License-Identifier: Apache-2.0
#include "daemon/model/latency_words.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "bpf/abi/latency_buckets.h"

namespace ssdpulse::model {

LatencyWords device_time_words(const DeviceIo& io, std::initializer_list<Operation> operations) {
  LatencyWords words;
  for (const Operation operation : operations) {
    for (const LatencyHistogram& histogram : io.operation(operation).device_latency) {
      add(words, histogram.words);
    }
  }
  return words;
}

void add(LatencyWords& sum, const LatencyWords& more) {
  sum.resize(std::max(sum.size(), more.size()));
  std::transform(more.begin(), more.end(), sum.begin(), sum.begin(), std::plus<>());
}

std::uint64_t count(const LatencyWords& words) { return std::accumulate(words.begin(), words.end(), std::uint64_t{0}); }

std::optional<LatencyWords> added(const LatencyWords& before, const LatencyWords& after) {
  if (before.size() > after.size()) {
    return std::nullopt;
  }
  LatencyWords difference = after;
  for (std::size_t word = 0; word < before.size(); ++word) {
    if (before[word] > after[word]) {
      return std::nullopt;
    }
    difference[word] -= before[word];
  }
  return difference;
}

std::size_t quantile_word(const LatencyWords& words, double share) {
  // 0.07 of 100 samples is the 7th, but as a product of doubles it is a little more than 7. Subtracting two units in
  // the last place, the most by which a share and a product can be rounded up, keeps it from becoming the 8th.
  constexpr double kRounding = 1 - 2 * std::numeric_limits<double>::epsilon();
  auto rank = static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(count(words)) * kRounding));
  std::size_t word = 0;
  while (word + 1 < words.size() && words[word] < rank) {
    rank -= words[word];
    ++word;
  }
  return word;
}

double upper_bound_seconds(std::size_t word) {
  if (word == LATENCY_ZERO_WORD) {
    return 0;
  }
  const int native = static_cast<int>(std::min<std::size_t>(word, LATENCY_OVER_WORD - 1)) - LATENCY_FIRST_NATIVE_WORD +
                     LATENCY_FIRST_NATIVE_INDEX;
  return std::exp2(native / 8.0);
}

}  // namespace ssdpulse::model
