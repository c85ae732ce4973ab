// SPDX-License-Identifier: Apache-2.0
// Shell globs on names, by fnmatch(3), so that devices.include matches as it would in a shell.
#pragma once

#include <fnmatch.h>

#include <algorithm>
#include <string>
#include <vector>

namespace ssdpulse::util {

inline bool glob_matches(const std::string& glob, const std::string& name) {
  return ::fnmatch(glob.c_str(), name.c_str(), 0) == 0;
}

inline bool any_glob_matches(const std::vector<std::string>& globs, const std::string& name) {
  return std::any_of(globs.begin(), globs.end(), [&](const std::string& glob) { return glob_matches(glob, name); });
}

}  // namespace ssdpulse::util
