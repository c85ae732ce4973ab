// SPDX-License-Identifier: Apache-2.0
#include "daemon/analysis/log_read_effect.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace ssdpulse::analysis {
namespace {

using model::Operation;

void add(LatencyWords& sum, const LatencyWords& more) {
  sum.resize(std::max(sum.size(), more.size()));
  std::transform(more.begin(), more.end(), sum.begin(), sum.begin(), std::plus<>());
}

std::uint64_t count(const LatencyWords& words) { return std::accumulate(words.begin(), words.end(), std::uint64_t{0}); }

/// The word in which the 99th percentile lies. Words are an eighth of a power of two apart.
std::size_t p99_word(const LatencyWords& words) {
  std::uint64_t above = count(words) / 100;
  std::size_t word = words.size() - 1;
  while (word > 0 && words[word] <= above) {
    above -= words[word];
    --word;
  }
  return word;
}

}  // namespace

LatencyWords read_and_write_words(const model::DeviceIo& io) {
  LatencyWords words;
  for (const Operation operation : {Operation::read, Operation::write}) {
    for (const model::LatencyHistogram& histogram : io.operation(operation).device_latency) {
      add(words, histogram.words);
    }
  }
  return words;
}

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

void LogReadEffect::add_near(const LatencyWords& ios) { add(near_, ios); }

void LogReadEffect::add_all(const LatencyWords& ios) { add(all_, ios); }

std::optional<double> LogReadEffect::ratio() const {
  const auto others = added(near_, all_);
  if (!others || count(near_) < kLeastIos || count(*others) < kLeastIos) {
    return std::nullopt;
  }
  const auto words_apart = static_cast<double>(p99_word(near_)) - static_cast<double>(p99_word(*others));
  return std::exp2(words_apart / 8);
}

void LogReadEffect::fade() {
  // The near ones are kept a part of all: both are rounded down, and near <= all in each word.
  for (LatencyWords* words : {&near_, &all_}) {
    for (std::uint64_t& word : *words) {
      word /= 2;
    }
  }
}

}  // namespace ssdpulse::analysis
