// SPDX-License-Identifier: Apache-2.0
#include "daemon/cli/asked_times.h"

#include <time.h>

#include <algorithm>
#include <charconv>

#include "daemon/config/value_text.h"

namespace ssdpulse::cli {
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

using Minutes = std::chrono::minutes;

model::PastTime minute_of(WallTime time) { return std::chrono::floor<Minutes>(time); }

util::Result<model::Window> checked(WallTime from, WallTime to, const std::string& text, WallTime now) {
  const model::Window window{minute_of(from), std::min(minute_of(to), minute_of(now))};
  return window.from < window.to ? util::Result<model::Window>(window)
                                 : util::fail("'" + text + "' is not a minute of the past");
}

util::Result<Minutes> parse_minutes(const char* option, const std::string& text) {
  const auto duration = config::parse_duration(text);
  if (!duration) {
    return util::fail(std::string(option) + ": " + duration.error().message);
  }
  return std::chrono::floor<Minutes>(*duration);
}

/// The last change: things that were done within a short time of each other are one change.
struct Done {
  WallTime first;
  WallTime last;
  std::string what;
};

util::Result<Done> last_change(const std::vector<model::Mark>& marks,
                               const std::vector<model::SettingChange>& settings) {
  std::vector<std::pair<WallTime, std::string>> all;
  for (const model::Mark& mark : marks) {
    all.emplace_back(mark.at, "mark \"" + util::for_json(mark.text) + "\"");
  }
  for (const model::SettingChange& change : settings) {
    if (change.before) {  // otherwise it was only seen for the first time
      all.emplace_back(
          change.at, (change.device.empty() ? "" : util::for_json(change.device) + " ") + util::for_json(change.name));
    }
  }
  if (all.empty()) {
    return util::fail(
        "the history knows no change: no setting changed, and nothing was marked (ssdpulse mark TEXT); "
        "name the time with --change TIME");
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  constexpr auto kTogether = Minutes(10);
  auto first = std::prev(all.end());
  while (first != all.begin() && first->first - std::prev(first)->first <= kTogether) {
    --first;
  }
  Done done{first->first, all.back().first, first->second};
  if (const auto others = std::distance(first, all.end()) - 1; others > 0) {
    done.what += " and " + std::to_string(others) + " more";
  }
  return done;
}

util::Result<PastWindows> around(const Done& done, const AskedWindows& asked, WallTime now) {
  const auto settle = parse_minutes("--settle", asked.settle);
  const auto width = parse_minutes("--width", asked.width);
  if (!settle || !width) {
    return tl::make_unexpected(!settle ? settle.error() : width.error());
  }
  auto windows = report::windows_around(done.first, done.last, now, *settle, *width);
  if (!windows) {
    return util::fail("the change was less than " + asked.settle +
                      " ago, which is left out for the disk to settle: wait, or say --settle 0s");
  }
  windows->change = done.what;
  return *windows;
}

util::Result<PastWindows> named(const AskedWindows& asked, WallTime now) {
  const auto after = parse_window(asked.after, now);
  if (!after) {
    return tl::make_unexpected(after.error().within("--after"));
  }
  const bool is_duration = asked.before.find("..") == std::string::npos;
  const auto before = parse_window(asked.before, is_duration ? WallTime(after->from) : now);
  if (!before) {
    return tl::make_unexpected(before.error().within("--before"));
  }
  if (before->to > after->from) {
    return util::fail("--before must end before --after begins");
  }
  return PastWindows{*before, *after, "", {}};
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

util::Result<model::Window> parse_window(const std::string& text, WallTime now) {
  const std::size_t dots = text.find("..");
  if (dots == std::string::npos) {
    const auto length = config::parse_duration(text);
    return length ? checked(now - std::chrono::duration_cast<WallTime::duration>(*length), now, text, now)
                  : util::fail("'" + text + "' is not a window; expected FROM..TO, such as -2h..-1h or " +
                               "2026-11-23T09:00..2026-11-23T17:00, or a duration");
  }
  const auto from = parse_time(text.substr(0, dots), now);
  if (!from) {
    return tl::make_unexpected(from.error());
  }
  const std::string end = text.substr(dots + 2);
  const auto to = end.empty() || end == "now" ? util::Result<WallTime>(now) : parse_time(end, now);
  return to ? checked(*from, *to, text, now) : tl::make_unexpected(to.error());
}

util::Result<PastWindows> find_windows(const AskedWindows& asked, WallTime now, const std::vector<model::Mark>& marks,
                                       const std::vector<model::SettingChange>& settings) {
  if (!asked.change.empty()) {
    if (asked.change == "last") {
      const auto done = last_change(marks, settings);
      return done ? around(*done, asked, now) : tl::make_unexpected(done.error());
    }
    const auto time = parse_time(asked.change, now);
    return time ? around({*time, *time, ""}, asked, now) : tl::make_unexpected(time.error().within("--change"));
  }
  if (!asked.last.empty()) {
    return parse_window(asked.last, now).map([](const model::Window& window) {
      return PastWindows{std::nullopt, window, "", {}};
    });
  }
  return named(asked, now);
}

}  // namespace ssdpulse::cli
