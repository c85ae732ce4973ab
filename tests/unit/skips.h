// SPDX-License-Identifier: Apache-2.0
// Which unit tests may skip? Those listed in tests/skips.txt. Any other skip fails its test, in every binary that links
// this: what is tested must not depend on what happens to be installed.
#pragma once

#include <istream>
#include <string>

namespace ssdpulse::test {

/// The list in which names are looked up.
inline constexpr const char* kSkips = SSDPULSE_SOURCE_DIR "/tests/skips.txt";

/// Whether the list has a line "unit.BINARY SUITE.TEST REASON" for this test; a line without a reason does not count.
bool may_skip(std::istream& list, const std::string& binary, const std::string& test);

}  // namespace ssdpulse::test
