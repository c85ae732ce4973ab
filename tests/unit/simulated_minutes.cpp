// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/simulated_minutes.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <numbers>
#include <random>

namespace ssdpulse::test {

namespace {

constexpr double kMeanSeconds = 200e-6;
constexpr double kBlock = 8192;

/// The share of a normal distribution below z: a table, as it is needed a hundred million times.
double below(double z) {
  static const auto kTable = [] {
    std::array<double, 4002> table{};
    for (std::size_t i = 0; i < table.size(); ++i) {
      table[i] = std::erfc(-(static_cast<double>(i) / 250 - 8) * std::numbers::sqrt2 / 2) / 2;
    }
    return table;
  }();
  if (z <= -8 || z >= 8) {
    return z < 0 ? 0 : 1;
  }
  const double at = (z + 8) * 250;
  const auto index = static_cast<std::size_t>(at);
  return kTable[index] + (at - static_cast<double>(index)) * (kTable[index + 1] - kTable[index]);
}

class Chance {
 public:
  explicit Chance(std::uint64_t seed) : engine_(seed) {}
  double uniform() { return static_cast<double>(engine_() >> 11U) * 0x1p-53; }
  double normal() { return normal_(engine_); }
  /// How many there are when the average is `expected`.
  std::uint64_t poisson(double expected) {
    if (expected > 40) {
      return static_cast<std::uint64_t>(std::max(0.0, std::round(expected + std::sqrt(expected) * normal())));
    }
    std::uint64_t count = 0;
    for (double left = uniform(), limit = std::exp(-expected); left > limit; left *= uniform()) {
      ++count;
    }
    return count;
  }

 private:
  std::mt19937_64 engine_;
  std::normal_distribution<double> normal_;
};

/// The upper bound of a word, as a logarithm of seconds: schema 3, and word 2 is native index -159.
double end_of(int word) { return (word - 161) / 8.0 * std::numbers::ln2; }

}  // namespace

std::vector<model::MinuteOf> simulate_minutes(const SimulatedDisk& disk, std::size_t minutes, std::uint64_t seed,
                                              std::int64_t start) {
  Chance chance(seed);
  std::vector<model::MinuteOf> result;
  double level = disk.level_spread * chance.normal();
  double load_level = 0.1 * chance.normal();
  bool burst = false;
  for (std::size_t i = 0; i < minutes; ++i) {
    level = disk.correlation * level +
            std::sqrt(1 - disk.correlation * disk.correlation) * disk.level_spread * chance.normal();
    load_level = 0.8 * load_level + 0.06 * chance.normal();
    burst = burst ? chance.uniform() > 1 / disk.burst_minutes : chance.uniform() < disk.bursts_a_minute;
    const double hour = disk.first_hour + static_cast<double>(i) / 60;
    const double load = (1 + disk.day_swing * std::sin(hour / 12 * std::numbers::pi)) * std::exp(load_level);
    const double middle = std::log(kMeanSeconds * disk.ratio) + level + 0.1 * std::log(load);
    const double slow = burst ? disk.slow_share : 0.002;
    model::MinuteOf minute;
    minute.device = "nvme0n1";
    minute.start = model::PastTime(std::chrono::minutes(start + static_cast<std::int64_t>(i)));
    minute.load.measured_ms = 60000;
    model::SparseHistogram& histogram = minute.load.latency(model::Latency::read_total);
    double before = 0;
    for (int word = 2; word < 210 && before < 1 - 1e-9; ++word) {
      const double z = (end_of(word) - middle) / disk.spread;
      const double now = z < -6 ? 0 : (1 - slow) * below(z) + slow * below(z - std::log(8) / disk.spread);
      const double expected = disk.ios * disk.load * load * (now - before);
      before = now;
      if (const std::uint64_t count = expected > 0 ? chance.poisson(expected) : 0; count > 0) {
        histogram.words.emplace_back(static_cast<std::uint8_t>(word), count);
        histogram.sum_ns += static_cast<std::uint64_t>(static_cast<double>(count) * std::exp(end_of(word)) * 1e9);
      }
    }
    model::OperationInterval& reads = minute.load.operations[index(model::Operation::read)];
    reads.ios = histogram.count();
    reads.bytes = reads.ios * static_cast<std::uint64_t>(kBlock);
    result.push_back(std::move(minute));
  }
  return result;
}

}  // namespace ssdpulse::test
