// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "daemon/util/duration_text.h"
#include "exporters/report/words.h"
#include "exporters/terminal/table.h"

namespace ssdpulse::report {

namespace {

/// For our own words, which contain no pipe.
void print_table(const Table& table, std::ostream& out) {
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
  if (comparison.before) {
    out << "Before: " << window_text(*comparison.before)
        << ", " + util::duration_text(3600 * comparison.hours_before) + " measured. "
        << "After: " << window_text(comparison.after)
        << ", " + util::duration_text(3600 * comparison.hours_after) + " measured.\n"
        << "**" << summary_text(comparison) << "**\n\n";
  } else {
    out << window_text(comparison.after)
        << ", " + util::duration_text(3600 * comparison.hours_after) + " measured.\n\n";
  }
  if (comparison.rows.empty()) {
    out << "Nothing was measured of this device in these windows.\n\n";
    return;
  }
  print_table(verdict_table(comparison), out);
  print_table(load_table(comparison), out);
  for (const std::string& remark : row_remarks(comparison)) {
    out << "- " << remark << '\n';
  }
  for (const model::SettingChange& change : comparison.differing) {
    out << "- changed: " << util::for_markdown(setting_text(change), util::kLongestSentence) << '\n';
  }
  for (const auto& note : comparison.notes) {
    out << "- " << note.text << '\n';
  }
  out << '\n';
}

}  // namespace

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
}

}  // namespace ssdpulse::report
