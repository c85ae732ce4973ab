// SPDX-License-Identifier: Apache-2.0
#include "exporters/page/json.h"

#include <fmt/format.h>
#include <utf8.h>

#include <array>
#include <cmath>
#include <iterator>

namespace ssdpulse::page {
namespace {

constexpr std::size_t kLongest = 128;  // characters

/// Control characters, line and paragraph separators, and marks of direction (Unicode Bidirectional Algorithm, 2).
bool is_hostile(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x061C || c == 0x200E || c == 0x200F ||
         (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069) || c == 0xFEFF;
}

}  // namespace

std::string text(std::string_view from_outside) {
  std::string valid;
  utf8::replace_invalid(from_outside.begin(), from_outside.end(), std::back_inserter(valid));
  std::string result;
  std::size_t length = 0;
  for (auto at = valid.begin(); at != valid.end() && length < kLongest; ++length) {
    const char32_t c = utf8::next(at, valid.end());
    utf8::append(is_hostile(c) ? char32_t{0xFFFD} : c, std::back_inserter(result));
  }
  return length == kLongest && from_outside.size() > result.size() ? result + "…" : result;
}

double seconds_of(model::WallTime time) {
  return static_cast<double>(std::chrono::round<std::chrono::milliseconds>(time.time_since_epoch()).count()) / 1000;
}

Json latency_of(std::uint8_t word) {
  const double seconds = live::upper_bound(word);
  return seconds == 0 ? 0.0 : std::stod(fmt::format("{:.4g}", seconds));
}

std::string run_of(const model::Snapshot& snapshot) {
  return fmt::format("{:.2f}", snapshot.process.start_time_seconds);
}

Json head_of(const model::Snapshot& snapshot) {
  return {{"run", run_of(snapshot)}, {"snapshot", snapshot.number}, {"taken_at", seconds_of(snapshot.taken_at)}};
}

}  // namespace ssdpulse::page
