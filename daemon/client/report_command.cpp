// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <fstream>
#include <iostream>

#include "daemon/client/commands.h"
#include "daemon/client/past_windows.h"
#include "daemon/client/progress_line.h"
#include "daemon/history/reader.h"
#include "daemon/util/in_time.h"
#include "daemon/util/read_file.h"
#include "exporters/report/report.h"

namespace ssdpulse::client {

namespace {

using analysis::comparison::Question;
using analysis::comparison::Side;
using Clock = std::chrono::steady_clock;
using history::Reader;

/// All that the history may still have.
model::Window all_times(WallTime now) {
  constexpr auto kLongest = std::chrono::hours(24 * 3650);
  const auto end = std::chrono::ceil<std::chrono::minutes>(now);
  return {end - kLongest, end + std::chrono::minutes(1)};
}

/// Of the disk, if this host still has one of this name.
std::optional<double> capacity_of(const std::string& device) {
  constexpr std::size_t kLongestNumber = 32;
  constexpr double kSectorBytes = 512;
  if (device.empty() || device.find('/') != std::string::npos) {
    return std::nullopt;
  }
  const auto text = util::read_file("/sys/class/block/" + device + "/size", kLongestNumber);
  std::uint64_t sectors = 0;
  if (!text || std::from_chars(text->data(), text->data() + text->size(), sectors).ec != std::errc{} || sectors == 0) {
    return std::nullopt;
  }
  return static_cast<double>(sectors) * kSectorBytes;
}

util::Result<Side> side_of(Reader& history, const model::PastDevice& device, const model::Window& window) {
  auto minutes = history.minutes(device, window);
  if (!minutes) {
    return tl::make_unexpected(minutes.error());
  }
  auto series = history.series(device, window);
  if (!series) {
    return tl::make_unexpected(series.error());
  }
  return Side{window, std::move(*minutes), std::move(series->wear)};
}

template <typename Event>
std::vector<Event> within(const std::vector<Event>& events, const model::Window& window) {
  std::vector<Event> result;
  for (const Event& event : events) {
    const auto at = std::chrono::floor<std::chrono::minutes>(event.at);
    if (at >= window.from && at <= window.to) {
      result.push_back(event);
    }
  }
  return result;
}

util::Result<Question> question_of(Reader& history, const model::PastDevice& device, const PastWindows& windows,
                                   const std::vector<model::SettingChange>& settings) {
  Question question{.device = device, .before = {}, .after = {}, .day = {}, .between = {}, .settings = {}, .marks = {}};
  auto after = side_of(history, device, windows.after);
  if (!after) {
    return tl::make_unexpected(after.error());
  }
  question.after = std::move(*after);
  if (windows.before) {
    auto before = side_of(history, device, *windows.before);
    auto between = history.minutes(device, {windows.before->to, windows.after.from});
    if (!before || !between) {
      return tl::make_unexpected(!before ? before.error() : between.error());
    }
    auto day = history.minutes(device, {windows.before->from - std::chrono::days(1), windows.before->from});
    if (!day) {
      return tl::make_unexpected(day.error());
    }
    question.before = std::move(*before);
    question.between = std::move(*between);
    question.day = std::move(*day);
    for (const auto& change : within(settings, {windows.before->from, windows.after.to})) {
      if (change.before && (change.device.empty() || change.identity == device.identity)) {
        question.settings.push_back(change);
      }
    }
  }
  return question;
}

bool measured(const Question& question) {
  return !question.after.minutes.empty() && (!question.before || !question.before->minutes.empty());
}

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof(name) - 1) == 0 ? name : "this host";
}

util::Result<report::Report> make_report(Reader& history, const ReportOptions& options) {
  const WallTime now = std::chrono::system_clock::now();
  const auto marks = history.marks(all_times(now));
  const auto settings = history.settings(all_times(now));
  const auto devices = history.devices();
  if (!marks || !settings || !devices) {
    return tl::make_unexpected(!marks ? marks.error() : !settings ? settings.error() : devices.error());
  }
  const auto windows = find_windows(options.windows, now, *marks, *settings);
  if (!windows) {
    return util::fail(windows.error().message, EINVAL);
  }
  report::Report report{host_name(), now, windows->change, {}, {}};
  report.marks = within(*marks, {windows->before.value_or(windows->after).from, windows->after.to});
  ProgressLine progress;
  for (const model::PastDevice& device : *devices) {
    if (!options.device.empty() && options.device != device.name && options.device != device.serial) {
      continue;
    }
    auto question = question_of(history, device, *windows, *settings);
    if (!question) {
      return tl::make_unexpected(question.error());
    }
    const bool replaced = std::any_of(devices->begin(), devices->end(), [&](const model::PastDevice& other) {
      return other.name == device.name && other.last > device.last;
    });
    question->time_scale = options.time_scale;
    question->capacity_bytes = replaced ? std::nullopt : capacity_of(device.name);
    if (measured(*question)) {
      auto comparison = analysis::comparison::compare(
          *question, [&](double share) { progress.show("comparing " + device.name, share); });
      report.devices.push_back({std::move(*question), std::move(comparison)});
    }
  }
  if (report.devices.empty()) {
    return util::fail("nothing was measured in these windows" +
                          (options.device.empty() ? std::string() : " of the device " + options.device) +
                          "; `ssdpulse history` shows what is kept",
                      ENODATA);
  }
  return report;
}

bool print(const report::Report& report, const ReportOptions& options) {
  if (!options.html_file.empty()) {
    std::ofstream file(options.html_file, std::ios::binary | std::ios::trunc);
    report::print_html(report, file);
    if (!file.flush()) {
      std::cerr << "--html: cannot write " << options.html_file << '\n';
      return false;
    }
  }
  if (options.json) {
    report::print_json(report, std::cout);
  } else if (options.markdown) {
    report::print_markdown(report, std::cout);
  } else if (options.html_file.empty()) {
    report::print_text(report, std::cout);
  }
  return static_cast<bool>(std::cout.flush());
}

}  // namespace

util::ExitCode report(const std::string& history_file, const ReportOptions& options) {
  using util::ExitCode;
  const auto answers = util::file_answers(history_file);
  auto history = answers ? Reader::open(history_file) : tl::make_unexpected(answers.error());
  auto made = history ? make_report(**history, options) : tl::make_unexpected(history.error());
  if (!made) {
    std::cerr << made.error().message << '\n';
    return made.error().error_number == EINVAL    ? ExitCode::usage
           : made.error().error_number == ENODATA ? ExitCode::no_data
                                                  : ExitCode::failure;
  }
  if (!print(*made, options)) {
    return ExitCode::failure;
  }
  bool worse = false;
  for (const report::DeviceReport& device : made->devices) {
    worse = worse || any_worse(device.comparison);
  }
  return options.fail_on_worse && worse ? ExitCode::failure : ExitCode::success;
}

}  // namespace ssdpulse::client
