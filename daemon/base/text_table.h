// SPDX-License-Identifier: Apache-2.0
// Lists on a terminal, in columns as wide as needed.
#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace ssdpulse::util {

/// The first row is the heading; all have the same number of columns. An empty field is shown as "-".
void print_table(const std::vector<std::vector<std::string>>& rows, std::ostream& out);

}  // namespace ssdpulse::util
