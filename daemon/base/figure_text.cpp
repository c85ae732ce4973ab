// SPDX-License-Identifier: Apache-2.0
#include "daemon/base/figure_text.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <utility>

namespace ssdpulse::util {
namespace {

constexpr double kRoundsUp = 0.9995;  // to the next unit

/// Of a value that is shown: 0 from 10 on, as rounded.
int decimals(double value) { return value >= 9.95 ? 0 : 1; }

/// 850, 24, 2.4, 0.9: further digits would mean nothing.
std::string digits(double value) {
  return fmt::format("{:.{}f}", value, value == std::floor(value) ? 0 : decimals(value));
}

/// "2026-11-24 ", or nothing on the day of `now`.
std::string date_prefix(std::chrono::system_clock::time_point time, std::chrono::system_clock::time_point now) {
  const auto day = [](std::chrono::system_clock::time_point at) { return std::chrono::floor<std::chrono::days>(at); };
  return day(time) == day(now) ? "" : fmt::format("{:%Y-%m-%d} ", std::chrono::floor<std::chrono::seconds>(time));
}

}  // namespace

std::string format_latency(double seconds) {
  if (seconds < kRoundsUp * 1e-3) {
    return digits(seconds * 1e6) + " us";
  }
  return seconds < kRoundsUp ? digits(seconds * 1e3) + " ms" : digits(seconds) + " s";
}

std::string format_duration(double seconds) {
  if (seconds < 120) {
    return fmt::format("{:.0f} s", std::max(1.0, seconds));
  }
  return seconds < 7200 ? fmt::format("{:.0f} min", seconds / 60) : fmt::format("{:.0f} h", seconds / 3600);
}

std::string format_factor(double factor) { return fmt::format("{:.{}f} times", factor, decimals(factor)); }

std::string format_count(std::uint64_t number, std::string_view singular, std::string_view plural) {
  std::string digits = std::to_string(number);
  for (std::size_t at = digits.size(); at > 3; at -= 3) {
    digits.insert(at - 3, ",");
  }
  return fmt::format("{} {}", digits, number == 1 ? singular : plural);
}

std::string format_size(double bytes) {
  constexpr auto kUnits = std::to_array<std::pair<double, const char*>>(
      {{1e15, " PB"}, {1e12, " TB"}, {1e9, " GB"}, {1e6, " MB"}, {1e3, " kB"}});
  for (const auto& [unit_bytes, unit] : kUnits) {
    if (bytes >= kRoundsUp * unit_bytes) {
      return digits(bytes / unit_bytes) + unit;
    }
  }
  return digits(bytes) + " B";
}

std::string format_clock(std::chrono::system_clock::time_point time) {
  return fmt::format("{:%H:%M:%S} UTC", std::chrono::floor<std::chrono::seconds>(time));
}

std::string format_clock(std::chrono::system_clock::time_point time, std::chrono::system_clock::time_point now) {
  return date_prefix(time, now) + format_clock(time);
}

std::string format_minute(std::chrono::system_clock::time_point time, std::chrono::system_clock::time_point now) {
  const auto begin = std::chrono::floor<std::chrono::seconds>(time);
  return fmt::format("between {}{:%H:%M} and {:%H:%M} UTC", date_prefix(time, now), begin,
                     begin + std::chrono::minutes(1));
}

}  // namespace ssdpulse::util
