// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "daemon/util/duration_text.h"
#include "exporters/report/words.h"
#include "exporters/terminal/table.h"

namespace ssdpulse::report {

namespace {

void print_text_of(const DeviceReport& device, std::ostream& out) {
  const Comparison& comparison = device.comparison;
  out << util::for_terminal(device_text(comparison.device), util::kLongestSentence) << '\n';
  if (comparison.before) {
    out << "  before  " << window_text(*comparison.before)
        << ", " + util::duration_text(3600 * comparison.hours_before) + " measured\n";
    out << "  after   " << window_text(comparison.after)
        << ", " + util::duration_text(3600 * comparison.hours_after) + " measured\n";
    out << "  " << summary_text(comparison) << "\n\n";
  } else {
    out << "  " << window_text(comparison.after)
        << ", " + util::duration_text(3600 * comparison.hours_after) + " measured\n\n";
  }
  if (comparison.rows.empty()) {
    out << "nothing was measured of this device in these windows\n\n";
    return;
  }
  terminal::print_table(verdict_table(comparison), out);
  out << '\n';
  terminal::print_table(load_table(comparison), out);
  out << '\n';
  for (const std::string& remark : row_remarks(comparison)) {
    out << "- " << remark << '\n';
  }
  for (const model::SettingChange& change : comparison.differing) {
    out << "- changed: " << util::for_terminal(setting_text(change), util::kLongestSentence) << '\n';
  }
  for (const auto& note : comparison.notes) {
    out << "- " << note.text << '\n';
  }
  out << '\n';
}

}  // namespace

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
}

}  // namespace ssdpulse::report
