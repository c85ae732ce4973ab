// SPDX-License-Identifier: Apache-2.0
#include "daemon/serve/history_routes.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <memory>
#include <optional>
#include <sstream>
#include <utility>

#include "daemon/serve/page_routes.h"
#include "exporters/coding/content_coding.h"
#include "exporters/page/history_json.h"
#include "exporters/report/report_maker.h"

namespace ssdpulse::serve {
namespace {

constexpr std::string_view kPrefix = "/api/v1/history/";
constexpr std::string_view kComparePrefix = "/api/v1/compare/";
constexpr std::chrono::hours kMaxMinutes{6};  // of one answer with histograms, and of a comparison
/// Before the times that are compared, to know how much such times differ by chance: a day takes too much memory here.
constexpr std::chrono::hours kChanceHours{6};
constexpr std::chrono::hours kMaxSeconds{1};
constexpr const char* kNoSuchHeat = "heat=: expected read, write, flush, discard or commit";

http::Response json(const http::Request& request, std::string bytes) {
  http::Response response{200, "application/json", "", page_headers(), nullptr};
  if (coding::prefers_gzip(request.accept_encoding)) {
    if (auto coded = coding::gzip(bytes, coding::Effort::usual)) {
      bytes = std::move(*coded);
      response.content_encoding = "gzip";
    }
  }
  response.body = std::make_shared<const std::string>(std::move(bytes));
  return response;
}

/// Busy, late, or without a file: not the client's fault, and perhaps better later.
http::Response error_response(const util::Error& error) {
  return text_response(error.error_number == ENOENT ? 404 : 503, error.message);
}

std::optional<std::int64_t> number_of(const std::string& text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool good = error == std::errc{} && end == text.data() + text.size() && number >= 0 && number < 8'000'000'000;
  return good ? std::optional(number) : std::nullopt;
}

/// from= and to=, in seconds since the epoch; without them the last day, or as much as an answer with histograms may
/// span. Widened to whole minutes.
std::optional<model::Window> window_of(const http::Request& request) {
  const auto now = std::chrono::system_clock::now();
  const std::string from = request.parameter("from");
  const std::string to = request.parameter("to");
  const auto from_number = number_of(from);
  const auto to_number = number_of(to);
  if ((!from.empty() && !from_number) || (!to.empty() && !to_number)) {
    return std::nullopt;
  }
  const auto time_of = [](std::int64_t seconds) { return std::chrono::sys_seconds(std::chrono::seconds(seconds)); };
  model::Window window;
  window.to = std::chrono::ceil<std::chrono::minutes>(to_number ? time_of(*to_number) : now);
  window.from = from_number ? std::chrono::floor<std::chrono::minutes>(time_of(*from_number))
                            : window.to - (request.parameter("minutes") == "1" ? kMaxMinutes : std::chrono::hours(24));
  return window.from < window.to ? std::optional(window) : std::nullopt;
}

http::Response list(const http::Request& request, history::Reader& reader, const model::Window& window) {
  std::uint64_t left_out = 0;
  const auto devices = reader.devices(&left_out);
  const auto settings = reader.settings(window);
  const auto marks = reader.marks(window);
  if (!devices || !settings || !marks) {
    return error_response(!devices ? devices.error() : !settings ? settings.error() : marks.error());
  }
  return json(request, page::history_list_json(*devices, *settings, *marks, left_out));
}

http::Response minutes_of(const http::Request& request, history::Reader& reader, const model::Window& window,
                          std::mutex& one_at_a_time) {
  if (window.to - window.from > kMaxMinutes + std::chrono::minutes(1)) {  // one more by widening to whole minutes
    return text_response(400, "minutes=1: six hours at most; ask for the rest in another request");
  }
  const std::unique_lock turn(one_at_a_time, std::try_to_lock);  // each answer takes much memory
  if (!turn.owns_lock()) {
    return text_response(503, "minutes=1: somebody else is being answered; ask again in a few seconds");
  }
  page::MinutesJson text;
  const auto read = reader.minutes(request.path.substr(kPrefix.size()), window,
                                   [&](const model::MinuteOf& minute) { text.add(minute); });
  return read ? json(request, text.take()) : error_response(read.error());
}

http::Response seconds_of(const http::Request& request, history::Reader& reader, const model::Window& window,
                          std::mutex& one_at_a_time) {
  if (window.to - window.from > kMaxSeconds) {
    return text_response(400, "seconds=1: an hour at most");
  }
  const std::string heat = request.parameter("heat").empty() ? "read" : request.parameter("heat");
  if (!page::is_heat(heat)) {
    return text_response(400, kNoSuchHeat);
  }
  const std::unique_lock turn(one_at_a_time, std::try_to_lock);
  if (!turn.owns_lock()) {
    return text_response(503, "seconds=1: somebody else is being answered; ask again in a few seconds");
  }
  const std::string device = request.path.substr(kPrefix.size());
  const auto seconds = reader.seconds(device, window);
  return seconds ? json(request, page::past_seconds_json(device, *seconds, window, heat))
                 : error_response(seconds.error());
}

/// The same length just before, or the same time of the day before.
std::optional<model::Window> window_against(const std::string& against, const model::Window& window) {
  if (against == "before") {
    return model::Window{window.from - (window.to - window.from), window.from};
  }
  if (against == "yesterday") {
    return model::Window{window.from - std::chrono::hours(24), window.to - std::chrono::hours(24)};
  }
  return std::nullopt;
}

/// As `ssdpulse report --json` answers, of one device.
http::Response compared(const http::Request& request, history::Reader& reader, std::mutex& one_at_a_time) {
  const std::string device = request.path.substr(std::min(kComparePrefix.size(), request.path.size()));
  if (device.empty()) {
    return text_response(400, "expected /api/v1/compare/DEVICE");
  }
  const auto window = window_of(request);
  const auto before = window ? window_against(request.parameter("against"), *window) : std::nullopt;
  if (!before) {
    return text_response(400, "from=, to=: expected seconds since the epoch; against=: before or yesterday");
  }
  if (window->to - window->from > kMaxMinutes + std::chrono::minutes(1)) {
    return text_response(400, "six hours at most; `ssdpulse report` compares longer times");
  }
  const std::unique_lock turn(one_at_a_time, std::try_to_lock);
  if (!turn.owns_lock()) {
    return text_response(503, "somebody else is being answered; ask again in a few seconds");
  }
  const auto made = report::make_report(reader, {.windows = {before, *window, "", {}},
                                                 .device = device,
                                                 .host = "",
                                                 .now = std::chrono::system_clock::now(),
                                                 .day = kChanceHours});
  if (!made) {
    return made.error().error_number == ENODATA
               ? text_response(404, "nothing was measured in one of these times, or it is not in the history yet")
               : error_response(made.error());
  }
  std::ostringstream text;
  report::print_json(*made, text);
  return json(request, std::move(text).str());
}

http::Response of_device(const http::Request& request, history::Reader& reader, const model::Window& window) {
  const std::string device = request.path.substr(kPrefix.size());
  const std::string asked = request.parameter("points");
  const auto points = asked.empty() ? std::optional<std::int64_t>(500) : number_of(asked);
  if (!points || *points < 2 || *points > static_cast<std::int64_t>(history::Reader::kMaxPoints)) {
    return text_response(400, "points=: expected 2 to 2000");
  }
  const page::HistoryWish wish{request.parameter("heat"), request.parameter("tenants") == "total"};
  if (!wish.heat.empty() && !page::is_heat(wish.heat)) {
    return text_response(400, kNoSuchHeat);
  }
  const auto series = reader.series(device, window, static_cast<std::size_t>(*points));
  return series ? json(request, page::history_json(*series, wish)) : error_response(series.error());
}

http::Response past(const http::Request& request, history::Reader& reader, std::mutex& one_at_a_time) {
  const auto window = window_of(request);
  if (!window) {
    return text_response(400, "from=, to=: expected seconds since the epoch, the first before the second");
  }
  if (request.path.size() <= kPrefix.size()) {
    return list(request, reader, *window);
  }
  if (request.parameter("minutes") == "1") {
    return minutes_of(request, reader, *window, one_at_a_time);
  }
  if (request.parameter("seconds") == "1") {
    return seconds_of(request, reader, *window, one_at_a_time);
  }
  return of_device(request, reader, *window);
}

/// report?device=NAME&at=SECONDS: what differs between the time before and after that moment, as one page to print or
/// save. Six hours on either side at most; ten minutes after the moment are left out where there is time enough.
http::Response report_page(const http::Request& request, history::Reader& reader, const std::string& own_name,
                           std::mutex& one_at_a_time) {
  using std::chrono::minutes;
  const auto at = number_of(request.parameter("at"));
  const std::string device = request.parameter("device");
  if (!at || device.empty()) {
    return text_response(400, "expected device=, a name, and at=, seconds since the epoch");
  }
  const std::unique_lock turn(one_at_a_time, std::try_to_lock);
  if (!turn.owns_lock()) {
    return text_response(503, "somebody else is being answered; ask again in a few seconds");
  }
  const auto now = std::chrono::system_clock::now();
  const std::chrono::sys_seconds moment{std::chrono::seconds(*at)};
  constexpr minutes kSettle{10};
  constexpr minutes kEnough{30};
  auto windows =
      report::windows_around(moment, moment, now, now - moment > kEnough ? kSettle : minutes(0), kMaxMinutes);
  if (!windows) {
    return text_response(400, "at=: less than a whole minute has passed since then");
  }
  windows->change = "at " + report::minute_text(moment);
  const auto made = report::make_report(
      reader, {.windows = std::move(*windows), .device = device, .host = own_name, .now = now, .day = kChanceHours});
  if (!made) {
    return made.error().error_number == ENODATA ? text_response(404, made.error().message)
                                                : error_response(made.error());
  }
  std::ostringstream out;
  report::print_html(*made, out);
  http::Response response{200, "text/html; charset=utf-8", "", page_headers(),
                          std::make_shared<const std::string>(std::move(out).str())};
  response.headers.front().second = report::kContentPolicy;  // its style and its pictures are in it
  return response;
}

/// Whose budget a mark is counted against. Over TCP without a password, users of this host cannot be distinguished.
std::string sender_of(const http::Request& request) {
  if (request.unix_user) {
    return "uid " + std::to_string(*request.unix_user);
  }
  return request.logged_in ? "user " + request.user : "tcp";
}

bool is_mark_id(std::string_view id) {
  constexpr std::size_t kMaxIdBytes = 64;  // a UUID fits
  return id.size() <= kMaxIdBytes && std::all_of(id.begin(), id.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
         });
}

http::Response mark(const http::Request& request, const KeepMark& keep, MarkRate& rate) {
  if (!request.local && !request.logged_in) {
    return text_response(403, "marks are taken from this host, and from users with a password (web.config_file)");
  }
  if (request.own.empty()) {
    return text_response(403,
                         "the header X-Ssdpulse is missing: use `ssdpulse mark`, or curl -X POST -H 'X-Ssdpulse: 1'");
  }
  const std::string text = request.parameter("text");
  if (!page::is_printable(text)) {
    return text_response(400, "text=: expected 1 to 128 characters of UTF-8, without control characters");
  }
  const std::string id = request.parameter("id");
  if (!is_mark_id(id)) {
    return text_response(400, "id=: expected at most 64 letters, digits and hyphens");
  }
  if (!rate.take(sender_of(request), std::chrono::steady_clock::now())) {
    return text_response(503, "more than 60 marks within a minute: this one is not kept, try again in a minute");
  }
  auto kept = keep({.at = std::chrono::system_clock::now(), .text = text, .id = id});
  constexpr std::chrono::seconds kDeadline{5};  // of this request; a disk that hangs has none
  if (kept.wait_for(kDeadline) != std::future_status::ready) {
    return text_response(
        503,
        "the history's disk has not confirmed the mark within 5 s. It may still be kept: with the same id=, "
        "trying again makes no second one");
  }
  const auto at = kept.get();
  return at ? json(request, page::history_list_json({}, {}, {{*at, text}}))
            : text_response(503, "the mark is not kept: " + at.error().message);
}

}  // namespace

void add_history(http::Routes& routes, history::Reader& reader, KeepMark keep_mark, std::vector<std::string> hosts,
                 std::string own_name) {
  const auto one_at_a_time = std::make_shared<std::mutex>();
  const auto handler = for_own_hosts(
      hosts, [&reader, one_at_a_time](const http::Request& request) { return past(request, reader, *one_at_a_time); });
  routes["/report"] = {
      for_own_hosts(hosts,
                    [&reader, own_name = std::move(own_name), one_at_a_time](const http::Request& request) {
                      return report_page(request, reader, own_name, *one_at_a_time);
                    }),
      http::Lane::slow};
  routes["/api/v1/compare/*"] = {
      for_own_hosts(hosts, [&reader, one_at_a_time](
                               const http::Request& request) { return compared(request, reader, *one_at_a_time); }),
      http::Lane::slow};
  routes["/api/v1/history"] = {handler, http::Lane::slow};
  routes["/api/v1/history/*"] = {handler, http::Lane::slow};
  routes["/api/v1/marks"] = {
      for_own_hosts(std::move(hosts), [keep = std::move(keep_mark), rate = std::make_shared<MarkRate>()](
                                          const http::Request& request) { return mark(request, keep, *rate); }),
      http::Lane::slow, nullptr, http::Method::post};
}

}  // namespace ssdpulse::serve
