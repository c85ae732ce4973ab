// SPDX-License-Identifier: Apache-2.0
// Numbers and times as text. Numbers as people write them, never with an exponent: 0.5, 12.3, 123456, 3 flushes.
// Durations: 27 s, 1 min 27 s, 3 h 48 min, 6 d 3 h. Moments as the log writes them: 2026-11-21T06:47:02.118Z.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>

namespace ssdpulse::util {

/// Three digits, all of those before the point, and no zeroes at the end; smaller than a thousandth: <0.001.
inline std::string number_text(double value) {
  const double size = std::abs(value);
  if (!std::isfinite(value) || size >= 1e15) {
    return fmt::format("{:.3g}", value);
  }
  if (size > 0 && size < 0.001) {
    return value > 0 ? "<0.001" : ">-0.001";
  }
  std::string text = fmt::format("{:.{}f}", value, size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3);
  if (text.find('.') != std::string::npos) {
    text.erase(text.find_last_not_of('0') + 1);
    text.erase(text.back() == '.' ? text.size() - 1 : text.size());
  }
  return text;
}

/// minutes, flushes
inline std::string plural_text(std::string_view word) {
  const bool takes_es = word.ends_with("sh") || word.ends_with("ch") || word.ends_with("s");
  return std::string(word) + (takes_es ? "es" : "s");
}

/// 1 minute, 2 minutes
inline std::string count_text(std::uint64_t count, std::string_view word) {
  return fmt::format("{} {}", count, count == 1 ? std::string(word) : plural_text(word));
}

/// The two largest units; below ten seconds with one decimal.
inline std::string duration_text(double seconds) {
  constexpr double kMaxDays = 1e6;
  if (!(seconds >= 10)) {  // also true for NaN
    return fmt::format("{:.3g} s", std::round(10 * std::max(0.0, seconds)) / 10);
  }
  const auto whole = static_cast<long long>(std::llround(std::min(seconds, kMaxDays * 86400)));
  const auto two_units = [](long long large, const char* unit, long long small, const char* part) {
    return fmt::format("{} {}", large, unit) + (small > 0 ? fmt::format(" {} {}", small, part) : "");
  };
  if (whole < 60) {
    return fmt::format("{} s", whole);
  }
  if (whole < 3600) {
    return two_units(whole / 60, "min", whole % 60, "s");
  }
  const long long minutes = std::llround(static_cast<double>(whole) / 60);
  if (minutes < 24 * 60) {
    return two_units(minutes / 60, "h", minutes % 60, "min");
  }
  const long long hours = std::llround(static_cast<double>(whole) / 3600);
  return two_units(hours / 24, "d", hours % 24, "h");
}

/// The note shown wherever the recorder's clock was not the host's, as in tests.
inline std::string time_scale_text(double scale) {
  return fmt::format("time is scaled: a minute of the history was {} of the host, and so are its dates",
                     duration_text(60 / scale));
}

/// UTC with milliseconds, in ISO 8601.
inline std::string utc_text(std::chrono::system_clock::time_point at) {
  const auto whole = std::chrono::floor<std::chrono::seconds>(at);
  const std::time_t seconds = std::chrono::system_clock::to_time_t(whole);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[64];
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts);
  return fmt::format("{}.{:03}Z", text, std::chrono::floor<std::chrono::milliseconds>(at - whole).count());
}

}  // namespace ssdpulse::util
