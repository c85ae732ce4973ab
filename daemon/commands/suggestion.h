// SPDX-License-Identifier: Apache-2.0
// nearest(): the word to suggest for a mistyped word of the command line, as in "Did you mean ...?".
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace ssdpulse::commands {

/// The word that differs from `wrong` by the fewest single-letter changes: at most a third of its letters, and no more
/// than three. Nothing if there is none; the first if there are several.
std::optional<std::string> nearest(const std::string& wrong, const std::vector<std::string>& words);

}  // namespace ssdpulse::commands
