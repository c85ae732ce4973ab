// SPDX-License-Identifier: Apache-2.0
#include "daemon/base/text_table.h"

#include <algorithm>

namespace ssdpulse::util {

void print_table(const std::vector<std::vector<std::string>>& rows, std::ostream& out) {
  std::vector<std::size_t> widths(rows[0].size());
  for (const auto& row : rows) {
    for (std::size_t column = 0; column < row.size(); ++column) {
      widths[column] = std::max(widths[column], row[column].size());
    }
  }
  const auto shown = [](const std::string& field) { return field.empty() ? std::string("-") : field; };
  for (const auto& row : rows) {
    for (std::size_t column = 0; column + 1 < row.size(); ++column) {
      const std::string field = shown(row[column]);
      out << field << std::string(widths[column] + 2 - std::min(widths[column], field.size()), ' ');
    }
    out << shown(row.back()) << '\n';
  }
}

}  // namespace ssdpulse::util
