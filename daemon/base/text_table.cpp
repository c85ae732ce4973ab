// SPDX-License-Identifier: Apache-2.0
#include "daemon/base/text_table.h"

#include <algorithm>
#include <iomanip>

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
      out << std::left << std::setw(static_cast<int>(widths[column]) + 2) << shown(row[column]);
    }
    out << shown(row.back()) << '\n';
  }
}

}  // namespace ssdpulse::util
