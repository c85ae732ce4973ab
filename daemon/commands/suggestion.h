// SPDX-License-Identifier: Apache-2.0
// "Did you mean ...?" for words of the command line that do not exist.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace ssdpulse::commands {

/// The word that differs from `wrong` by the fewest single-letter changes: at most a third of its letters, and no more
/// than three. Nothing if there is none; the first if there are several.
std::optional<std::string> nearest(const std::string& wrong, const std::vector<std::string>& words);

}  // namespace ssdpulse::commands
