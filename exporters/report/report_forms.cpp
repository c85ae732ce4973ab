// SPDX-License-Identifier: Apache-2.0
#include "exporters/report/report_forms.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>

#include "daemon/base/number_text.h"
#include "daemon/base/text_table.h"
#include "daemon/compare/load_classes.h"

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
    return "+9900 or more";
  }
  const long whole = std::lround(100 * (ratio - 1));
  return whole == 0 ? "0" : fmt::format("{:+d}", whole);
}

std::string times(double ratio) {
  constexpr double kMaxRatio = 1000;
  return !std::isfinite(ratio) || ratio >= kMaxRatio ? "1000 or more"
         : ratio < 0.01                              ? "0"
         : ratio >= 99.5                             ? fmt::format("{:.0f}", ratio)
                                                     : fmt::format("{:.2g}", ratio);
}

/// Of one side of a row.
std::string side_text(const Row& row, std::optional<double> value, double count) {
  return value || count == 0    ? value_text(value, row.unit)
         : count < row.n_needed ? "too few"
         : row.n_needed == 0    ? "no data"
                                : "out of range";
}

std::string length_text(double hours) {
  constexpr double kQuarter = 24 * 90;
  if (hours >= kQuarter) {
    return "no window of a quarter would decide";
  }
  if (hours <= 1) {
    constexpr double kStep = 5;
    return fmt::format("windows of about {:.0f} minutes would decide", kStep * std::ceil(hours * 60 / kStep));
  }
  return fmt::format("windows of about {:.0f} hours would decide", std::ceil(hours));
}

std::string when(std::time_t seconds, const char* format) {
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[64];
  return {text, std::strftime(text, sizeof(text), format, &parts)};
}

/// `escaped`: makes a text that came from outside safe for the form.
template <typename Escaped>
void print_remarks(const Comparison& comparison, Escaped escaped, std::ostream& out) {
  for (const std::string& remark : row_remarks(comparison)) {
    out << "- " << remark << '\n';
  }
  for (const model::SettingChange& change : comparison.differing) {
    out << "- changed: " << escaped(setting_text(change)) << '\n';
  }
  for (const auto& note : comparison.notes) {
    out << "- " << note.text << '\n';
  }
  out << '\n';
}

void print_text_of(const DeviceReport& device, std::ostream& out) {
  const Comparison& comparison = device.comparison;
  out << util::for_terminal(device_text(comparison.device), util::kLongestSentence) << '\n';
  const std::string after = measured_text(comparison.after, comparison.hours_after);
  if (comparison.before) {
    out << "  before  " << measured_text(*comparison.before, comparison.hours_before) << "\n  after   " << after
        << "\n  " << summary_text(comparison) << "\n\n";
  } else {
    out << "  " << after << "\n\n";
  }
  if (comparison.rows.empty()) {
    out << "nothing was measured of this device in these windows\n\n";
    return;
  }
  util::print_table(verdict_table(comparison), out);
  out << '\n';
  util::print_table(load_table(comparison), out);
  out << '\n';
  print_remarks(
      comparison, [](const util::OutsideText& text) { return util::for_terminal(text, util::kLongestSentence); }, out);
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
  const Comparison& comparison = device.comparison;
  out << "## " << util::for_markdown(device_text(comparison.device), util::kLongestSentence) << "\n\n";
  const std::string after = measured_text(comparison.after, comparison.hours_after);
  if (comparison.before) {
    out << "Before: " << measured_text(*comparison.before, comparison.hours_before) << ". After: " << after << ".\n**"
        << summary_text(comparison) << "**\n\n";
  } else {
    out << after << ".\n\n";
  }
  if (comparison.rows.empty()) {
    out << "Nothing was measured of this device in these windows.\n\n";
    return;
  }
  print_markdown_table(verdict_table(comparison), out);
  print_markdown_table(load_table(comparison), out);
  print_remarks(
      comparison, [](const util::OutsideText& text) { return util::for_markdown(text, util::kLongestSentence); }, out);
}

}  // namespace

std::string value_text(std::optional<double> value, Unit unit) {
  if (!value) {
    return "no data";
  }
  switch (unit) {
    case Unit::seconds:
      return scaled(*value, {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}});
    case Unit::share:
      return fmt::format("{:.3g} %", 100 * *value);
    case Unit::bytes_per_day:
      return bytes_text(*value) + "/day";
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
  // Nobody can picture +2670 %.
  if (change->ratio >= 2 || change->upper >= 3) {
    return fmt::format("{} times ({} to {})", times(change->ratio), times(change->lower), times(change->upper));
  }
  return fmt::format("{} % ({} to {})", percent(change->ratio), percent(change->lower), percent(change->upper));
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
  return when(seconds(window.from), "%Y-%m-%d %H:%M") + " to " +
         when(seconds(window.to), same_day ? "%H:%M UTC" : "%Y-%m-%d %H:%M UTC");
}

std::string measured_text(const model::Window& window, double hours) {
  return fmt::format("{}, {} measured", window_text(window), util::duration_text(3600 * hours));
}

Table verdict_table(const Comparison& comparison) {
  const bool compared = comparison.before.has_value();
  Table table{compared ? std::vector<std::string>{"figure", "before", "after", "change (95 %)", "verdict", "n before",
                                                  "n after"}
                       : std::vector<std::string>{"figure", "value", "n"}};
  for (const Row& row : comparison.rows) {
    if (compared) {
      table.push_back({row.what, side_text(row, row.before, row.n_before), side_text(row, row.after, row.n_after),
                       change_text(row.answer()), std::string(name(row.verdict.value_or(Verdict::cannot_tell))),
                       count_text(row, row.n_before), count_text(row, row.n_after)});
    } else {
      table.push_back({row.what, side_text(row, row.after, row.n_after), count_text(row, row.n_after)});
    }
  }
  return table;
}

Table load_table(const Comparison& comparison) {
  const bool compared = comparison.before.has_value();
  Table table{compared ? std::vector<std::string>{"load", "before", "after"}
                       : std::vector<std::string>{"load", "value"}};
  for (const LoadRow& row : comparison.load) {
    table.push_back({row.what});
    if (compared) {
      table.back().push_back(value_text(row.before, row.unit));
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
        const auto& [lower, upper] = *row.corrected;
        remark += upper >= 3 ? fmt::format(" (corrected for all rows: {} to {} times)", times(lower), times(upper))
                             : fmt::format(" (corrected for all rows: {} to {} %)", percent(lower), percent(upper));
      }
      if (row.hours_needed) {
        remark += "; " + length_text(*row.hours_needed);
        remark += row.from == compare::IntervalFrom::few_minutes ? ", or a day of history before them" : "";
      }
      remarks.push_back(std::move(remark));
    }
    if (row.usual && row.answer() && (*row.usual < row.answer()->lower || *row.usual > row.answer()->upper)) {
      remarks.push_back(row.what + fmt::format(": {} % in the median minute: a few minutes make the difference",
                                               percent(*row.usual)));
    }
    constexpr double kMinShift = 0.01;
    if (row.adjusted && row.raw && std::fabs(std::log(row.adjusted->ratio / row.raw->ratio)) > kMinShift) {
      remarks.push_back(row.what + ": " + change_text(row.raw) + " as measured, before the load is adjusted for");
    }
  }
  return remarks;
}

std::string summary_text(const Comparison& comparison) {
  std::string text;
  for (std::size_t verdict = 0; verdict < compare::kVerdictNames.size(); ++verdict) {
    const auto count = std::count_if(comparison.rows.begin(), comparison.rows.end(), [&](const Row& row) {
      return row.verdict && static_cast<std::size_t>(*row.verdict) == verdict;
    });
    if (count > 0) {
      text += (text.empty() ? "" : ", ") + std::string(compare::kVerdictNames[verdict]) + " " + std::to_string(count);
    }
  }
  return text;
}

util::OutsideText device_text(const model::PastDevice& device) {
  std::string text = device.name;
  if (!device.model.empty() || !device.serial.empty()) {
    text += " (" + util::for_json(device.model) +
            (device.serial.empty() ? "" : ", serial " + util::for_json(device.serial)) + ")";
  }
  return text;
}

util::OutsideText setting_text(const model::SettingChange& change) {
  return minute_text(change.at) + "  " + (change.device.empty() ? "host" : util::for_json(change.device)) + "  " +
         util::for_json(change.name, util::kLongestSentence) + ": " +
         util::for_json(change.before.value_or("(not known)"), util::kLongestSentence) + " -> " +
         util::for_json(change.value, util::kLongestSentence);
}

void print_text(const Report& report, std::ostream& out) {
  if (!report.change.empty()) {
    out << "Change: " << util::for_terminal(report.change, util::kLongestSentence) << "\n";
  }
  for (const model::Mark& mark : report.marks) {
    out << "Mark: " << minute_text(mark.at) << "  " << util::for_terminal(mark.text) << '\n';
  }
  if (!report.change.empty() || !report.marks.empty()) {
    out << '\n';
  }
  for (const DeviceReport& device : report.devices) {
    print_text_of(device, out);
  }
  if (const Table ladder = ladder_table(report); !ladder.empty()) {
    util::print_table(ladder, out);
    for (const std::string& remark : ladder_remarks(report)) {
      out << "- " << remark << '\n';
    }
  }
}

void print_markdown(const Report& report, std::ostream& out) {
  out << "# ssdpulse report: " << util::for_markdown(report.host) << "\n\n";
  if (!report.change.empty()) {
    out << "Change: " << util::for_markdown(report.change, util::kLongestSentence) << "\n\n";
  }
  for (const model::Mark& mark : report.marks) {
    out << "- mark " << minute_text(mark.at) << ": " << util::for_markdown(mark.text) << '\n';
  }
  out << (report.marks.empty() ? "" : "\n");
  for (const DeviceReport& device : report.devices) {
    print_markdown_of(device, out);
  }
  if (const Table ladder = ladder_table(report); !ladder.empty()) {
    out << "## Write ladder\n\n";
    print_markdown_table(ladder, out);
    for (const std::string& remark : ladder_remarks(report)) {
      out << "- " << remark << '\n';
    }
  }
}

}  // namespace ssdpulse::report
