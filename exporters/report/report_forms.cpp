// SPDX-License-Identifier: Apache-2.0
#include "exporters/report/report_forms.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>

#include "daemon/base/number_text.h"
#include "daemon/base/text_table.h"
#include "daemon/compare/load_classes.h"
#include "exporters/words/report.h"
#include "exporters/words/shared.h"

namespace ssdpulse::report {
namespace {

using compare::kMinCommonShare;
using compare::Verdict;

struct Scale {
  double at_least;
  const char* unit;
};

std::string scaled(double value, std::initializer_list<Scale> scales) {
  for (const Scale& scale : scales) {
    if (value >= scale.at_least) {
      return fmt::format("{:.3g} {}", value / scale.at_least, scale.unit);
    }
  }
  return fmt::format("{:.3g} {}", value / std::rbegin(scales)->at_least, std::rbegin(scales)->unit);
}

std::string bytes_text(double bytes) {
  return bytes < 1000 ? fmt::format("{:.0f} B", bytes)
                      : scaled(bytes, {{1e15, "PB"}, {1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}});
}

std::string plain(double value) {
  return value < 1000 ? fmt::format("{:.3g}", value) : scaled(value, {{1e9, "G"}, {1e6, "M"}, {1e3, "k"}});
}

std::string percent(double ratio) {
  constexpr double kMaxRatio = 100;
  if (!std::isfinite(ratio) || ratio >= kMaxRatio) {
    return words::report::kHugePercent;
  }
  const long whole = std::lround(100 * (ratio - 1));
  return whole == 0 ? "0" : fmt::format("{:+d}", whole);
}

/// Of one side of a row.
std::string side_text(const Row& row, std::optional<double> value, double count) {
  return value || count == 0    ? value_text(value, row.unit)
         : count < row.n_needed ? words::report::kTooFew
         : row.n_needed == 0    ? words::shared::kNoData
                                : words::report::kOutOfRange;
}

std::string when(std::time_t seconds, const char* format) {
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[64];
  return {text, std::strftime(text, sizeof(text), format, &parts)};
}

using Clean = std::string (*)(const util::OutsideText&, std::size_t);

/// Sentences of ours that contain names, each made safe for the form.
std::string sentences_text(const std::vector<std::string>& sentences, const char* between, Clean clean) {
  std::string text;
  for (const std::string& sentence : sentences) {
    text += (text.empty() ? "" : between) + clean(sentence, util::kLongestSentence);
  }
  return text;
}

/// What is folded, and how to see it; empty: nothing is.
std::string fold_text(const Report& report, const DeviceReport& open) {
  const std::size_t rows = open.comparison.rows.size();
  const std::size_t load = load_table(open, false).size() - load_table(open, true).size();
  std::vector<std::string> parts;
  if (rows > kMaxShown) {
    parts.push_back(util::count_text(rows - kMaxShown, words::report::kRow));
  }
  if (load > 0) {
    parts.push_back(fmt::format(words::report::kLoadWithin, util::count_text(load, words::report::kFigure)));
  }
  if (report.devices.size() > 1) {
    parts.push_back(util::count_text(report.devices.size() - 1, words::report::kDisk));
  }
  return parts.empty() ? "" : fmt::format(words::report::kNotShown, fmt::join(parts, ", "));
}

void print_text_of(const DeviceReport& device, std::ostream& out) {
  out << util::for_terminal(device_text(device.comparison.device), util::kLongestSentence) << "\n  "
      << sentences_text(answer_of(device.comparison), "\n  ", util::for_terminal) << "\n\n";
  if (device.comparison.rows.empty()) {
    return;
  }
  util::print_table(verdict_table(device, device.comparison.rows.size(), true), out);
  out << '\n';
  util::print_table(load_table(device, false), out);
  out << '\n';
  const auto remarks = row_remarks(device.comparison);
  out << (remarks.empty() ? "" : "- " + sentences_text(remarks, "\n- ", util::for_terminal) + "\n\n");
}

/// For texts of our own, which contain no pipe.
void print_markdown_table(const Table& table, std::ostream& out) {
  for (std::size_t row = 0; row < table.size(); ++row) {
    for (const std::string& field : table[row]) {
      out << "| " << (field.empty() && row > 0 ? "-" : field) << ' ';
    }
    out << "|\n";
    for (std::size_t column = 0; row == 0 && column < table[0].size(); ++column) {
      out << (column == 0 ? "|---" : "|---:");
    }
    out << (row == 0 ? "|\n" : "");
  }
  out << '\n';
}

void print_markdown_of(const DeviceReport& device, std::ostream& out) {
  out << "## " << util::for_markdown(device_text(device.comparison.device), util::kLongestSentence) << "\n\n"
      << sentences_text(answer_of(device.comparison), " ", util::for_markdown) << "\n\n";
  if (device.comparison.rows.empty()) {
    return;
  }
  print_markdown_table(verdict_table(device, device.comparison.rows.size(), true), out);
  print_markdown_table(load_table(device, false), out);
  const auto remarks = row_remarks(device.comparison);
  out << (remarks.empty() ? "" : "- " + sentences_text(remarks, "\n- ", util::for_markdown) + "\n\n");
}

}  // namespace

std::string value_text(std::optional<double> value, Unit unit) {
  if (!value) {
    return words::shared::kNoData;
  }
  switch (unit) {
    case Unit::seconds:
      return scaled(*value, {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}});
    case Unit::share:
      return fmt::format("{:.3g} %", 100 * *value);
    case Unit::bytes_per_day:
      return fmt::format(words::report::kPerDay, bytes_text(*value));
    case Unit::per_second:
      return plain(*value) + "/s";
    case Unit::bytes_per_second:
      return bytes_text(*value) + "/s";
    case Unit::bytes:
      return bytes_text(*value);
    case Unit::celsius:
      return fmt::format("{:.0f} C", *value);
    case Unit::ratio:
    case Unit::count:
      break;
  }
  return plain(*value);
}

std::string change_text(const std::optional<Change>& change) {
  if (!change) {
    return "";
  }
  if (is_in_times(*change)) {
    return fmt::format(words::report::kChangeTimes, times_text(change->ratio), times_text(change->lower),
                       times_text(change->upper));
  }
  return fmt::format(words::report::kChangePercent, percent(change->ratio), percent(change->lower),
                     percent(change->upper));
}

bool is_in_times(const Change& change) { return change.ratio >= 2 || change.upper >= 3; }

std::string times_text(double ratio) {
  constexpr double kMaxRatio = 1000;
  return !std::isfinite(ratio) || ratio >= kMaxRatio ? words::report::kHugeTimes
         : ratio < 0.01                              ? "0"
         : ratio >= 99.5                             ? fmt::format("{:.0f}", ratio)
                                                     : fmt::format("{:.2g}", ratio);
}

std::string interval_text(const compare::Interval& interval) {
  return interval.upper >= 3
             ? fmt::format(words::report::kIntervalTimes, times_text(interval.lower), times_text(interval.upper))
             : fmt::format(words::report::kIntervalPercent, percent(interval.lower), percent(interval.upper));
}

std::string length_text(double hours) {
  constexpr double kQuarter = 24 * 90;
  if (hours >= kQuarter) {
    return words::report::kNeverDecides;
  }
  if (hours <= 1) {
    constexpr double kStep = 5;
    return fmt::format(words::report::kMinutesDecide, kStep * std::ceil(hours * 60 / kStep));
  }
  return fmt::format(words::report::kHoursDecide, std::ceil(hours));
}

std::string count_text(const Row& row, double count) {
  return row.id.starts_with("wear.") ? bytes_text(count) : plain(count);
}

std::string minute_text(model::WallTime time) {
  return when(std::chrono::system_clock::to_time_t(time), "%Y-%m-%d %H:%M UTC");
}

std::string window_text(const model::Window& window) {
  const auto seconds = [](model::PastTime time) {
    return static_cast<std::time_t>(std::chrono::seconds(time.time_since_epoch()).count());
  };
  const bool same_day =
      std::chrono::floor<std::chrono::days>(window.from) == std::chrono::floor<std::chrono::days>(window.to);
  return fmt::format(words::shared::kSpan, when(seconds(window.from), "%Y-%m-%d %H:%M"),
                     when(seconds(window.to), same_day ? "%H:%M UTC" : "%Y-%m-%d %H:%M UTC"));
}

std::string measured_text(const model::Window& window, double hours) {
  return fmt::format(words::report::kWindowMeasured, window_text(window), util::duration_text(3600 * hours));
}

Table verdict_table(const DeviceReport& device, std::size_t rows, bool counts) {
  const Comparison& comparison = device.comparison;
  const bool compared = comparison.before.has_value();
  Table table{{words::report::kFigure}};
  const auto add = [&table](bool wanted, const std::string& field) {
    if (wanted) {
      table.back().push_back(field);
    }
  };
  add(compared, words::report::kBefore);
  add(device.during.has_value(), words::report::kDuring);
  add(true, compared ? words::report::kAfter : words::report::kValue);
  add(compared, words::shared::kChangeHead);
  add(compared, words::shared::kVerdict);
  add(compared && counts, words::report::kCountBefore);
  add(counts, compared ? words::report::kCountAfter : words::report::kCount);
  const auto ordered = by_weight(comparison);
  for (std::size_t i = 0; i < std::min(rows, ordered.size()); ++i) {
    const Row& row = *ordered[i];
    table.push_back({row.what});
    add(compared, side_text(row, row.before, row.n_before));
    if (device.during) {
      const auto& during = device.during->comparison.rows;
      const auto same = std::find_if(during.begin(), during.end(), [&](const Row& one) { return one.id == row.id; });
      add(true, same == during.end() ? words::shared::kNoData : side_text(*same, same->after, same->n_after));
    }
    add(true, side_text(row, row.after, row.n_after));
    add(compared, change_text(row.answer()));
    add(compared, std::string(name(row.verdict.value_or(Verdict::cannot_tell))));
    add(compared && counts, count_text(row, row.n_before));
    add(counts, count_text(row, row.n_after));
  }
  return table;
}

Table load_table(const DeviceReport& device, bool changed) {
  const Comparison& comparison = device.comparison;
  const bool compared = comparison.before.has_value();
  Table table{compared ? std::vector<std::string>{words::report::kLoad, words::report::kBefore, words::report::kAfter}
                       : std::vector<std::string>{words::report::kLoad, words::report::kValue}};
  if (device.during) {
    table[0].insert(table[0].begin() + 2, words::report::kDuring);
  }
  for (const LoadRow& row : comparison.load) {
    const double before = row.before.value_or(0);
    const double after = row.after.value_or(0);
    if (changed && compared && std::fabs(after - before) <= compare::kMargin * std::max(before, after)) {
      continue;
    }
    table.push_back({row.what});
    if (compared) {
      table.back().push_back(value_text(row.before, row.unit));
    }
    if (device.during) {
      const auto& during = device.during->comparison.load;
      const auto same =
          std::find_if(during.begin(), during.end(), [&](const LoadRow& one) { return one.id == row.id; });
      table.back().push_back(value_text(same == during.end() ? std::nullopt : same->after, row.unit));
    }
    table.back().push_back(value_text(row.after, row.unit));
  }
  return table;
}

std::vector<std::string> row_remarks(const Comparison& comparison) {
  std::vector<std::string> remarks;
  for (const Row& row : comparison.rows) {
    // Another load is said once, below.
    if (!row.reason.empty() && (row.verdict != Verdict::not_comparable || comparison.common_load >= kMinCommonShare)) {
      std::string remark = row.what + ": " + row.reason;
      if (row.verdict == Verdict::cannot_tell && row.corrected) {
        remark = fmt::format(words::report::kCorrected, remark, interval_text(*row.corrected));
      }
      if (row.hours_needed) {
        remark += "; " + length_text(*row.hours_needed);
        remark =
            row.from == compare::IntervalFrom::few_minutes ? fmt::format(words::report::kOrDayBefore, remark) : remark;
      }
      remarks.push_back(std::move(remark));
    }
    if (row.usual && row.answer() && (*row.usual < row.answer()->lower || *row.usual > row.answer()->upper)) {
      remarks.push_back(fmt::format(words::report::kFewMinutes, row.what, percent(*row.usual)));
    }
    constexpr double kMinShift = 0.01;
    if (row.adjusted && row.raw && std::fabs(std::log(row.adjusted->ratio / row.raw->ratio)) > kMinShift) {
      remarks.push_back(fmt::format(words::report::kBeforeAdjusting, row.what, change_text(row.raw)));
    }
  }
  return remarks;
}

std::vector<std::pair<std::string, std::string>> windows_of(const DeviceReport& device) {
  const Comparison& comparison = device.comparison;
  std::vector<std::pair<std::string, std::string>> windows;
  if (comparison.before) {
    windows.emplace_back(words::report::kWindowBefore, measured_text(*comparison.before, comparison.hours_before));
  }
  if (device.during) {
    windows.emplace_back(words::report::kWindowDuring,
                         measured_text(device.during->side.window, device.during->comparison.hours_after));
  }
  windows.emplace_back(comparison.before ? words::report::kWindowAfter : words::report::kWindow,
                       measured_text(comparison.after, comparison.hours_after));
  return windows;
}

std::vector<util::OutsideText> changes_of(const Report& report) {
  std::vector<util::OutsideText> changes;
  for (const DeviceReport& device : report.devices) {
    for (const model::SettingChange& change : device.comparison.differing) {
      util::OutsideText text = setting_text(change);
      if (std::find(changes.begin(), changes.end(), text) == changes.end()) {  // of the host: said once
        changes.push_back(std::move(text));
      }
    }
  }
  for (const model::Mark& mark : report.marks) {
    changes.emplace_back(fmt::format(words::report::kMark, minute_text(mark.at), util::for_json(mark.text)));
  }
  if (changes.empty() && !report.change.empty()) {
    changes.push_back(report.change);
  }
  return changes;
}

util::OutsideText device_text(const model::PastDevice& device) {
  const std::string model = util::for_json(device.model);
  return !device.serial.empty()
             ? fmt::format(words::report::kDeviceSerial, device.name, model, util::for_json(device.serial))
         : !device.model.empty() ? fmt::format("{} ({})", device.name, model)
                                 : device.name;
}

util::OutsideText setting_text(const model::SettingChange& change) {
  return minute_text(change.at) + "  " +
         (change.device.empty() ? words::shared::kHost : util::for_json(change.device)) + "  " +
         util::for_json(change.name, util::kLongestSentence) + ": " +
         util::for_json(change.before.value_or(words::report::kNotKnown), util::kLongestSentence) + " -> " +
         util::for_json(change.value, util::kLongestSentence);
}

namespace {

void print_devices_text(const Report& report, const std::vector<const DeviceReport*>& devices, Style style,
                        std::ostream& out) {
  const DeviceReport& open = *devices[0];
  out << sentences_text(answer_of(report), "\n", util::for_terminal) << "\n\n";
  if (const std::string picture = picture_text(open, style.blocks); !picture.empty()) {
    out << picture << '\n';
  }
  if (!style.all && !open.comparison.rows.empty()) {
    util::print_table(verdict_table(open, kMaxShown, false), out);
    out << '\n';
    if (const Table load = load_table(open, true); load.size() > 1) {
      util::print_table(load, out);
      out << '\n';
    }
  }
  out << fmt::format("{:8}{}\n", words::report::kDevice,
                     util::for_terminal(device_text(open.comparison.device), util::kLongestSentence));
  for (const auto& [name, window] : windows_of(open)) {
    out << fmt::format("{:8}{}\n", name, window);
  }
  for (const util::OutsideText& change : changes_of(report)) {
    out << fmt::format("{:8}{}\n", words::report::kChanged, util::for_terminal(change, util::kLongestSentence));
  }
  out << '\n';
  for (const NoteGroup& group : notes_of(report)) {
    out << group.title << ":\n  " << sentences_text(group.sentences, "\n  ", util::for_terminal) << '\n';
  }
  if (const std::string folded = fold_text(report, open); !style.all && !folded.empty()) {
    out << folded << '\n';
  }
  for (std::size_t i = 0; style.all && i < devices.size(); ++i) {
    out << '\n';
    print_text_of(*devices[i], out);
  }
}

}  // namespace

void print_text(const Report& report, std::ostream& out, Style style) {
  if (const auto devices = by_weight(report); !devices.empty()) {
    print_devices_text(report, devices, style, out);
  }
  if (const Table ladder = ladder_table(report); !ladder.empty()) {
    util::print_table(ladder, out);
    for (const std::string& remark : ladder_remarks(report)) {
      out << "- " << remark << '\n';
    }
  }
}

namespace {

void print_devices_markdown(const Report& report, const std::vector<const DeviceReport*>& devices, Style style,
                            std::ostream& out) {
  const DeviceReport& open = *devices[0];
  out << "**" << sentences_text(answer_of(report), "**\n\n**", util::for_markdown) << "**\n\n";
  if (!style.all && !open.comparison.rows.empty()) {
    print_markdown_table(verdict_table(open, kMaxShown, false), out);
    if (const Table load = load_table(open, true); load.size() > 1) {
      print_markdown_table(load, out);
    }
  }
  out << "- " << words::report::kDevice << ": "
      << util::for_markdown(device_text(open.comparison.device), util::kLongestSentence) << '\n';
  for (const auto& [name, window] : windows_of(open)) {
    out << "- " << name << ": " << window << '\n';
  }
  for (const util::OutsideText& change : changes_of(report)) {
    out << "- " << words::report::kChanged << ": " << util::for_markdown(change, util::kLongestSentence) << '\n';
  }
  for (const NoteGroup& group : notes_of(report)) {
    out << "- " << group.title << ": " << sentences_text(group.sentences, " ", util::for_markdown) << '\n';
  }
  if (const std::string folded = fold_text(report, open); !style.all && !folded.empty()) {
    out << '\n' << folded << '\n';
  }
  for (std::size_t i = 0; style.all && i < devices.size(); ++i) {
    out << '\n';
    print_markdown_of(*devices[i], out);
  }
}

}  // namespace

void print_markdown(const Report& report, std::ostream& out, Style style) {
  out << "# " << fmt::format(words::report::kTitleOf, util::for_markdown(report.host)) << "\n\n";
  if (const auto devices = by_weight(report); !devices.empty()) {
    print_devices_markdown(report, devices, style, out);
  }
  if (const Table ladder = ladder_table(report); !ladder.empty()) {
    out << "## " << words::report::kWriteLadder << "\n\n";
    print_markdown_table(ladder, out);
    for (const std::string& remark : ladder_remarks(report)) {
      out << "- " << remark << '\n';
    }
  }
}

}  // namespace ssdpulse::report
