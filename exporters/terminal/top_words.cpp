// SPDX-License-Identifier: Apache-2.0
#include "exporters/terminal/top_words.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cmath>
#include <ctime>

namespace ssdpulse::terminal {
namespace {

std::string digits(double value) {
  return value >= 99.5 || value == std::floor(value) ? fmt::format("{:.0f}", value) : fmt::format("{:.1f}", value);
}

std::string scaled(double value, const char* const* units) {
  while (value >= 1000 && *(units + 1) != nullptr) {
    value /= 1000;
    ++units;
  }
  return digits(value) + *units;
}

}  // namespace

std::string latency_text(std::optional<double> seconds) {
  if (!seconds) {
    return "-";
  }
  if (*seconds < 1e-3) {
    return digits(*seconds * 1e6) + "us";
  }
  return *seconds < 1 ? digits(*seconds * 1e3) + "ms" : digits(*seconds) + "s";
}

std::string count_text(std::optional<double> count) {
  static constexpr const char* kUnits[] = {"", "k", "M", "G", "T", nullptr};
  return count ? scaled(*count, kUnits) : "?";
}

std::string bytes_text(std::optional<double> bytes) {
  static constexpr const char* kUnits[] = {"B", "k", "M", "G", "T", "P", nullptr};
  return bytes ? scaled(*bytes, kUnits) : "?";
}

std::string duration_text(double seconds) {
  if (seconds < 120) {
    return fmt::format("{:.0f}s", std::max(0.0, seconds));
  }
  return seconds < 7200 ? fmt::format("{:.0f}m", seconds / 60) : fmt::format("{:.0f}h", seconds / 3600);
}

std::string clock_text(double seconds) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm local{};
  return ::localtime_r(&time, &local) == nullptr ? "?" : fmt::format("{:%H:%M:%S}", local);
}

std::string zone_text(double seconds) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm local{};
  return ::localtime_r(&time, &local) == nullptr ? "" : fmt::format("{:%Z}", local);
}

std::string date_text(double seconds) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm local{};
  return ::localtime_r(&time, &local) == nullptr ? "?" : fmt::format("{:%Y-%m-%d %H:%M}", local);
}

std::string drive_text(const std::string& use, const std::string& name, std::size_t width) {
  constexpr std::size_t kMinUseLength = 4;  // characters of `use` that are worth showing
  const std::string behind = " (" + name + ")";
  if (use.empty() || behind.size() + kMinUseLength > width) {
    return name.substr(0, width);
  }
  const std::size_t room = width - behind.size();
  return (use.size() <= room ? use : use.substr(0, room - 1) + "~") + behind;
}

}  // namespace ssdpulse::terminal
