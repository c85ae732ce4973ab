// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "daemon/util/duration_text.h"
#include "exporters/report/words.h"
#include "exporters/terminal/table.h"

namespace ssdpulse::report {

namespace {

using terminal::printable;

void print_text_of(const DeviceReport& device, std::ostream& out) {
  const Comparison& comparison = device.comparison;
  out << printable(device_text(comparison.device)) << '\n';
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
    out << "- changed: " << printable(setting_text(change)) << '\n';
  }
  for (const auto& note : comparison.notes) {
    out << "- " << note.text << '\n';
  }
  out << '\n';
}

}  // namespace

void print_text(const Report& report, std::ostream& out) {
  if (!report.change.empty()) {
    out << "Change: " << printable(report.change) << "\n";
  }
  for (const model::Mark& mark : report.marks) {
    out << "Mark: " << minute_text(mark.at) << "  " << printable(mark.text) << '\n';
  }
  if (!report.change.empty() || !report.marks.empty()) {
    out << '\n';
  }
  for (const DeviceReport& device : report.devices) {
    print_text_of(device, out);
  }
}

}  // namespace ssdpulse::report
