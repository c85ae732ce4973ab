// SPDX-License-Identifier: Apache-2.0
#include "exporters/terminal/drive_list.h"

#include "exporters/terminal/table.h"

namespace ssdpulse::terminal {
namespace {

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) {
    text += (text.empty() ? "" : " ") + name;
  }
  return text;
}

}  // namespace

void print_drives(const std::vector<DriveLine>& lines, std::ostream& out) {
  if (lines.empty()) {
    return;
  }
  std::vector<std::vector<std::string>> rows{
      {"CONTROLLER", "NAMESPACES", "FIRMWARE", "LOG PAGES", "WRITE AMPLIFICATION", "WHY"}};
  for (const DriveLine& line : lines) {
    std::vector<std::string> row{line.controller, joined(line.namespaces), util::for_terminal(line.firmware)};
    if (!line.failure) {
      row.insert(row.end(), {joined(line.log_pages), line.source.empty() ? "unknown" : line.source,
                             util::for_terminal(line.reason, util::kLongestSentence)});
    } else {
      row.insert(row.end(),
                 {"-", "unknown", "cannot be read: " + util::for_terminal(*line.failure, util::kLongestSentence)});
    }
    rows.push_back(std::move(row));
  }
  out << '\n';
  print_table(rows, out);
}

}  // namespace ssdpulse::terminal
