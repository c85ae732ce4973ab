// SPDX-License-Identifier: Apache-2.0
#include "daemon/config/device_pattern.h"

#include <algorithm>
#include <cstddef>

namespace ssdpulse::config {

std::optional<std::string> validate_device_pattern(std::string_view glob) {
  if (glob.empty()) {
    return "is empty";
  }
  if (glob.find('/') != std::string_view::npos) {
    return "contains a slash: a pattern matches the kernel's name, such as nvme0n1, not a path below /dev";
  }
  if (std::any_of(glob.begin(), glob.end(), [](char c) { return c <= 0x20 || c >= 0x7f; })) {
    return "contains a character that no device name has";
  }
  for (std::size_t i = 0; i < glob.size(); ++i) {
    if (glob[i] == '\\' && ++i == glob.size()) {
      return "ends with a backslash";
    }
    if (glob[i] == '[') {
      const std::size_t first = i + (glob.substr(i + 1, 1).find_first_of("!^") == 0 ? 2 : 1);
      i = glob.find(']', first + 1);  // a ] that comes first is a member of the set
      if (i == std::string_view::npos) {
        return "has a [ without its ]";
      }
    }
  }
  return std::nullopt;
}

}  // namespace ssdpulse::config
