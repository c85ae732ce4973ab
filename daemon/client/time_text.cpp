// SPDX-License-Identifier: Apache-2.0
#include "daemon/client/time_text.h"

#include <time.h>

#include <charconv>
#include <optional>

#include "daemon/config/units.h"

namespace ssdpulse::client {
namespace {

/// Matches one of these formats, to the end of the text.
std::optional<tm> parse_by(const std::string& text, std::initializer_list<const char*> formats, const tm& defaults) {
  for (const char* format : formats) {
    tm parsed = defaults;
    const char* end = ::strptime(text.c_str(), format, &parsed);
    if (end != nullptr && *end == '\0') {
      return parsed;
    }
  }
  return std::nullopt;
}

util::Result<WallTime> wrong(const std::string& text) {
  return util::fail("'" + text +
                    "' is not a time; expected 03:00, 03:00:12, 2026-11-23T03:00:12, with Z at the end for UTC, " +
                    "-10m, or @SECONDS since the epoch");
}

}  // namespace

util::Result<WallTime> parse_time(const std::string& text, WallTime now) {
  if (text.size() > 1 && text.front() == '-') {
    const auto ago = config::parse_duration(text.substr(1));
    return ago ? util::Result<WallTime>(now - std::chrono::duration_cast<WallTime::duration>(*ago)) : wrong(text);
  }
  if (text.size() > 1 && text.front() == '@') {
    std::int64_t seconds = 0;
    const auto [end, error] = std::from_chars(text.data() + 1, text.data() + text.size(), seconds);
    return error == std::errc{} && end == text.data() + text.size() && seconds >= 0 && seconds < 4'000'000'000
               ? util::Result<WallTime>(WallTime(std::chrono::seconds(seconds)))
               : wrong(text);
  }
  const bool utc = !text.empty() && text.back() == 'Z';
  const std::string plain = utc ? text.substr(0, text.size() - 1) : text;
  const time_t today = std::chrono::system_clock::to_time_t(now);
  tm defaults{};
  utc ? ::gmtime_r(&today, &defaults) : ::localtime_r(&today, &defaults);
  defaults.tm_sec = 0;
  defaults.tm_isdst = -1;
  const auto seconds_of = [utc](tm& parts) { return utc ? ::timegm(&parts) : ::mktime(&parts); };
  if (auto dated =
          parse_by(plain, {"%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M"}, defaults)) {
    return std::chrono::system_clock::from_time_t(seconds_of(*dated));
  }
  if (auto of_day = parse_by(plain, {"%H:%M:%S", "%H:%M"}, defaults)) {
    tm yesterday = *of_day;
    --yesterday.tm_mday;
    const auto time = std::chrono::system_clock::from_time_t(seconds_of(*of_day));
    return time <= now ? time : std::chrono::system_clock::from_time_t(seconds_of(yesterday));
  }
  return wrong(text);
}

}  // namespace ssdpulse::client
