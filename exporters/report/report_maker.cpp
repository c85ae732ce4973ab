// SPDX-License-Identifier: Apache-2.0
#include "exporters/report/report_maker.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>

#include "daemon/base/file_descriptor.h"
#include "exporters/words/report.h"

namespace ssdpulse::report {
namespace {

using compare::Question;
using compare::Side;
using history::Reader;

/// Of the disk, if this host still has one of this name.
std::optional<double> capacity_of(const std::string& device) {
  constexpr std::size_t kMaxNumberBytes = 32;
  constexpr double kSectorBytes = 512;
  if (device.empty() || device.find('/') != std::string::npos) {
    return std::nullopt;
  }
  const auto text = util::read_file("/sys/class/block/" + device + "/size", kMaxNumberBytes);
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
                                   std::chrono::hours day_before, const std::vector<model::SettingChange>& settings) {
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
    auto day = history.minutes(device, {windows.before->from - day_before, windows.before->from});
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

/// Of what was kept in both windows.
util::Result<void> add_ladders(Reader& history, const PastWindows& windows, Report& report) {
  auto after = history.ladder(windows.after);
  auto before = history.ladder(windows.before.value_or(windows.after));
  if (!after || !before) {
    return tl::make_unexpected(!after ? after.error() : before.error());
  }
  if (after->hours > 0 && before->hours > 0) {
    report.ladder_after = std::move(*after);
    if (windows.before) {
      report.ladder_before = std::move(*before);
    }
  }
  return {};
}

/// While a command ran, compared with the window before it.
util::Result<During> during_of(Reader& history, const Question& question, const model::Window& window) {
  auto side = side_of(history, question.device, window);
  if (!side) {
    return tl::make_unexpected(side.error());
  }
  Question during = question;
  during.after = *side;
  during.between.clear();
  return During{std::move(*side), compare::compare(during)};
}

}  // namespace

util::Result<Report> make_report(Reader& history, const Wanted& wanted, const Progress& progress) {
  const PastWindows& windows = wanted.windows;
  const model::Window whole{windows.before.value_or(windows.after).from, windows.after.to};
  const model::Window read{whole.from, whole.to + std::chrono::minutes(1)};
  const auto marks = history.marks(read);
  const auto settings = history.settings(read);
  const auto devices = history.devices();
  if (!marks || !settings || !devices) {
    return tl::make_unexpected(!marks ? marks.error() : !settings ? settings.error() : devices.error());
  }
  Report report{wanted.host.empty() ? words::report::kThisHost : wanted.host,
                wanted.now,
                windows.change,
                within(*marks, whole),
                {}};
  if (auto ladders = add_ladders(history, windows, report); !ladders) {
    return tl::make_unexpected(ladders.error());
  }
  for (const model::PastDevice& device : *devices) {
    if (!wanted.device.empty() && wanted.device != device.name && wanted.device != device.serial) {
      continue;
    }
    auto question = question_of(history, device, windows, wanted.day, *settings);
    if (!question) {
      return tl::make_unexpected(question.error());
    }
    const bool replaced = std::any_of(devices->begin(), devices->end(), [&](const model::PastDevice& other) {
      return other.name == device.name && other.last > device.last;
    });
    question->time_scale = wanted.time_scale;
    question->capacity_bytes = replaced ? std::nullopt : capacity_of(device.name);
    if (!measured(*question)) {
      continue;
    }
    const auto show = [&](double share) { progress ? progress(device.name, share) : void(); };
    auto comparison = compare::compare(*question, show);
    std::optional<During> during;
    if (windows.during) {
      auto read_during = during_of(history, *question, *windows.during);
      if (!read_during) {
        return tl::make_unexpected(read_during.error());
      }
      during = std::move(*read_during);
    }
    report.devices.push_back({std::move(*question), std::move(comparison), std::move(during)});
  }
  if (report.devices.empty()) {
    return util::fail(wanted.device.empty() ? words::report::kNothingInWindows
                                            : fmt::format(words::report::kNothingOfDevice, wanted.device),
                      ENODATA);
  }
  return report;
}

std::optional<PastWindows> windows_around(model::WallTime first, model::WallTime last, model::WallTime now,
                                          std::chrono::minutes settle, std::chrono::minutes width) {
  using Minutes = std::chrono::minutes;
  const model::PastTime change = std::chrono::floor<Minutes>(first);
  const model::PastTime begin = std::chrono::floor<Minutes>(last) + Minutes(1) + settle;
  const Minutes length = std::min(std::chrono::floor<Minutes>(now) - begin, width);
  return length < Minutes(1)
             ? std::nullopt
             : std::optional(
                   PastWindows{model::Window{change - length, change}, model::Window{begin, begin + length}, "", {}});
}

}  // namespace ssdpulse::report
