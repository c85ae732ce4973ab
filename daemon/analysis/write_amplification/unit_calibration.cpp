// SPDX-License-Identifier: Apache-2.0
#include "daemon/analysis/write_amplification/unit_calibration.h"

#include <array>
#include <span>

namespace ssdpulse::analysis {
namespace {

constexpr std::uint64_t kDataUnit = 512'000;
constexpr std::uint64_t kBillion = 1'000'000'000;
constexpr auto kUnits = std::to_array<std::uint64_t>(
    {1, 512, 4096, kDataUnit, 1'000'000, 1U << 20U, 32U << 20U, kBillion, std::uint64_t{1} << 30U});

/// Media writes from the factory and from a young drive are not representative.
constexpr model::Uint128 kMinDataUnits = 100'000;
constexpr double kMinAmplification = 0.3;
constexpr double kMaxAmplification = 1000;

/// Bytes by one counter divided by bytes by the other, with each off by up to one unit.
struct Agreement {
  double lower;
  double upper;
};

Agreement compare(model::Uint128 count, std::uint64_t unit, model::Uint128 data_units) {
  const double units_ratio = static_cast<double>(unit) / static_cast<double>(kDataUnit);
  const auto counted = static_cast<double>(count);
  const auto reference = static_cast<double>(data_units);
  return {.lower = (counted - 1) / (reference + 1) * units_ratio,
          .upper = (counted + 1) / (reference - 1) * units_ratio};
}

/// The only unit that can agree within the tolerance, if it certainly does; 0 if another could as well.
std::uint64_t only_unit(std::span<const std::uint64_t> units, model::Uint128 count, model::Uint128 data_units,
                        double tolerance) {
  std::uint64_t fitting = 0;
  bool certain = false;
  for (const auto unit : units) {
    const auto [lower, upper] = compare(count, unit, data_units);
    if (upper < 1 - tolerance || lower > 1 + tolerance) {
      continue;
    }
    if (fitting != 0) {
      return 0;
    }
    fitting = unit;
    certain = lower >= 1 - tolerance && upper <= 1 + tolerance;
  }
  return certain ? fitting : 0;
}

std::uint64_t fitting_unit(std::span<const std::uint64_t> units, model::Uint128 count, model::Uint128 data_units) {
  if (count == 0 || data_units <= 1) {
    return 0;
  }
  const auto near = only_unit(units, count, data_units, 0.01);
  return near != 0 ? near : only_unit(units, count, data_units, 0.1);
}

}  // namespace

std::uint64_t unit_of_host_counter(model::Uint128 host_count, model::Uint128 data_units_written) {
  return fitting_unit(kUnits, host_count, data_units_written);
}

std::uint64_t unit_of_media_counter(model::Uint128 media_count, model::Uint128 data_units_written) {
  if (data_units_written < kMinDataUnits) {
    return 0;
  }
  for (const std::uint64_t unit : {std::uint64_t{1}, kDataUnit}) {
    const double amplification = static_cast<double>(media_count) * static_cast<double>(unit) /
                                 (static_cast<double>(data_units_written) * static_cast<double>(kDataUnit));
    if (amplification >= kMinAmplification && amplification <= kMaxAmplification) {
      return unit;
    }
  }
  return 0;
}

std::uint64_t unit_of_endurance_groups(model::Uint128 group_data_units, model::Uint128 data_units_written) {
  static constexpr auto kGroupUnits = std::to_array<std::uint64_t>({kBillion, kDataUnit});
  return fitting_unit(kGroupUnits, group_data_units, data_units_written);
}

}  // namespace ssdpulse::analysis
