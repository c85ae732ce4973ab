// SPDX-License-Identifier: Apache-2.0
#include "exporters/http/hosts.h"

#include <arpa/inet.h>
#include <strings.h>

#include <algorithm>

namespace ssdpulse::http {
namespace {

bool is_address(const std::string& text, int family) {
  in6_addr address{};
  return ::inet_pton(family, text.c_str(), &address) == 1;
}

bool is_port(std::string_view text) {
  return text.size() <= 5 && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool is_same_name(std::string_view a, std::string_view b) {
  return a.size() == b.size() && ::strncasecmp(a.data(), b.data(), a.size()) == 0;
}

bool is_localhost(std::string_view name) {
  constexpr std::string_view kLocalhost = "localhost";
  constexpr std::string_view kBelow = ".localhost";  // RFC 6761, 6.3
  return is_same_name(name, kLocalhost) ||
         (name.size() > kBelow.size() && is_same_name(name.substr(name.size() - kBelow.size()), kBelow));
}

}  // namespace

bool is_own_host(std::string_view host, const std::vector<std::string>& names) {
  if (host.empty()) {
    return true;
  }
  if (host.front() == '[') {
    const auto end = host.find(']');
    if (end == std::string_view::npos) {
      return false;
    }
    const auto rest = host.substr(end + 1);
    return is_address(std::string(host.substr(1, end - 1)), AF_INET6) &&
           (rest.empty() || (rest.front() == ':' && is_port(rest.substr(1))));
  }
  const auto colon = host.find(':');
  std::string_view name = host.substr(0, colon);
  if (colon != std::string_view::npos && !is_port(host.substr(colon + 1))) {
    return false;
  }
  if (!name.empty() && name.back() == '.') {
    name.remove_suffix(1);
  }
  return is_address(std::string(name), AF_INET) || is_localhost(name) ||
         std::any_of(names.begin(), names.end(),
                     [name](const std::string& known) { return is_same_name(name, known); });
}

}  // namespace ssdpulse::http
