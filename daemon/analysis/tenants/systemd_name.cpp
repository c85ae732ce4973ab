// SPDX-License-Identifier: Apache-2.0
#include "daemon/analysis/tenants/systemd_name.h"

#include <charconv>
#include <cstddef>

namespace ssdpulse::analysis {

std::string without_escapes(std::string_view name) {
  constexpr std::size_t kEscape = 4;  // \x2d
  std::string plain;
  while (!name.empty()) {
    unsigned char byte = 0;
    if (name.size() >= kEscape && name[0] == '\\' && name[1] == 'x' &&
        std::from_chars(name.data() + 2, name.data() + kEscape, byte, 16).ptr == name.data() + kEscape) {
      plain += static_cast<char>(byte);
      name.remove_prefix(kEscape);
    } else {
      plain += name[0];
      name.remove_prefix(1);
    }
  }
  return plain;
}

bool strip_suffix(std::string_view& name, std::string_view suffix) {
  const bool has_it = name.size() > suffix.size() && name.substr(name.size() - suffix.size()) == suffix;
  name.remove_suffix(has_it ? suffix.size() : 0);
  return has_it;
}

bool strip_prefix(std::string_view& name, std::string_view prefix) {
  const bool has_it = name.size() > prefix.size() && name.substr(0, prefix.size()) == prefix;
  name.remove_prefix(has_it ? prefix.size() : 0);
  return has_it;
}

}  // namespace ssdpulse::analysis
