// SPDX-License-Identifier: Apache-2.0
// Times as the log writes them: UTC with milliseconds, in ISO 8601 (2026-11-21T06:47:02.118Z).
#pragma once

#include <chrono>
#include <cstdio>
#include <ctime>
#include <string>

namespace ssdpulse::util {

inline std::string utc_text(std::chrono::system_clock::time_point at) {
  const auto milliseconds = std::chrono::floor<std::chrono::milliseconds>(at.time_since_epoch()).count();
  const auto part = milliseconds % 1000 < 0 ? milliseconds % 1000 + 1000 : milliseconds % 1000;
  const auto seconds = static_cast<std::time_t>((milliseconds - part) / 1000);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[64];
  const std::size_t length = std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(text + length, sizeof(text) - length, ".%03dZ", static_cast<int>(part));
  return text;
}

}  // namespace ssdpulse::util
