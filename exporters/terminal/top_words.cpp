// SPDX-License-Identifier: Apache-2.0
#include "exporters/terminal/top_words.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>

#include "exporters/terminal/top_screen.h"

namespace ssdpulse::terminal {
namespace {

/// Three digits at most, without zeroes at the end: 1.6, never 1.60.
std::string short_text(double value) {
  std::string text = fmt::format("{:.{}f}", value, value >= 100 ? 0 : value >= 10 ? 1 : 2);
  if (text.find('.') != std::string::npos) {
    text.erase(text.find_last_not_of('0') + 1);
    text.erase(text.back() == '.' ? text.size() - 1 : text.size());
  }
  return text;
}

/// 12,500
std::string whole_text(double value) {
  std::string text = fmt::format("{:.0f}", value);
  for (std::size_t i = 3; i < text.size() && std::isfinite(value); i += 4) {
    text.insert(text.size() - i, ",");
  }
  return text;
}

std::string scaled(double value, const char* const* units) {
  while (value >= 1000 && *(units + 1) != nullptr) {
    value /= 1000;
    ++units;
  }
  return (value >= 99.5 || value == std::floor(value) ? fmt::format("{:.0f}", value) : fmt::format("{:.1f}", value)) +
         *units;
}

}  // namespace

std::string latency_text(std::optional<double> seconds) {
  if (!seconds) {
    return kNotKnown;
  }
  if (*seconds < 1e-3) {
    return short_text(*seconds * 1e6) + " µs";
  }
  return *seconds < 1 ? short_text(*seconds * 1e3) + " ms" : short_text(*seconds) + " s";
}

std::string milliseconds_text(std::optional<double> seconds) {
  if (!seconds) {
    return kNotKnown;
  }
  if (*seconds >= 10) {
    return whole_text(*seconds) + " s";
  }
  return *seconds < 0.01 ? fmt::format("{:.2g}", *seconds * 1e3) : whole_text(*seconds * 1e3);
}

std::string rate_text(std::optional<double> per_second) {
  return !per_second ? kNotKnown : *per_second < 10 ? short_text(*per_second) : whole_text(*per_second);
}

std::string megabytes_text(std::optional<double> bytes) {
  return !bytes ? kNotKnown : *bytes > 0 && *bytes < 5e3 ? "<0.01" : short_text(*bytes / 1e6);
}

std::string percent_text(std::optional<double> ratio) {
  return ratio ? fmt::format("{:.0f}", *ratio * 100) : kNotKnown;
}

std::string bytes_text(std::optional<double> bytes) {
  static constexpr const char* kUnits[] = {"B", "k", "M", "G", "T", "P", nullptr};
  return bytes ? scaled(*bytes, kUnits) : "?";
}

std::string duration_text(double seconds) {
  if (seconds < 120) {
    return fmt::format("{:.0f} s", std::max(0.0, seconds));
  }
  return seconds < 7200 ? fmt::format("{:.0f} min", seconds / 60) : fmt::format("{:.0f} h", seconds / 3600);
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

std::string shortened(const std::string& text, std::size_t width) {
  return characters(text).size() <= width ? text
                                          : first_characters(text, width - std::min<std::size_t>(width, 1)) + "~";
}

std::string drive_text(const std::string& use, const std::string& name, std::size_t width) {
  constexpr std::size_t kMinUseLength = 4;  // characters of `use` that are worth showing
  const std::string behind = " (" + name + ")";
  const std::size_t taken = characters(behind).size();
  if (use.empty() || taken + kMinUseLength > width) {
    return first_characters(name, width);
  }
  const std::size_t room = width - taken;
  return shortened(use, room) + behind;
}

}  // namespace ssdpulse::terminal
