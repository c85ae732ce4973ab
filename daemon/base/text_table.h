// SPDX-License-Identifier: Apache-2.0
// Lists on a terminal, in columns as wide as needed.
#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace ssdpulse::util {

/// The first row, which must be there, is the heading; all have the same number of columns. Fields are ASCII; an empty
/// one is shown as "-".
void print_table(const std::vector<std::vector<std::string>>& rows, std::ostream& out);

}  // namespace ssdpulse::util
