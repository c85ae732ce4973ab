// SPDX-License-Identifier: Apache-2.0
// Reads and writes listen addresses. All spellings of an address become one, so that duplicates can be detected.
#include "daemon/config/listen_address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>

#include "daemon/config/problem.h"

namespace ssdpulse::config {
namespace {

constexpr std::size_t kMaxHostName = 253;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// The address as inet_ntop spells it; empty if it is not an address.
std::string canonical_address(int family, const std::string& text) {
  std::array<unsigned char, sizeof(in6_addr)> address{};
  std::array<char, INET6_ADDRSTRLEN> spelling{};
  if (inet_pton(family, text.c_str(), address.data()) != 1 ||
      inet_ntop(family, address.data(), spelling.data(), spelling.size()) == nullptr) {
    return {};
  }
  return spelling.data();
}

/// Letters, digits, '-', '_' and '.' in lower case; empty if it is not a host name.
std::string canonical_name(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  const bool valid = name.size() <= kMaxHostName && name.front() != '-' && name.front() != '.' &&
                     std::all_of(name.begin(), name.end(), [](char c) {
                       return (c >= 'a' && c <= 'z') || is_digit(c) || c == '-' || c == '_' || c == '.';
                     });
  return valid ? name : std::string{};
}

}  // namespace

util::Result<ListenAddress> parse_listen_address(std::string_view text) {
  const auto wrong = [text](const std::string& why) {
    return util::fail(in_quotes(text) + " " + why + "; expected HOST:PORT, [IPV6]:PORT or :PORT");
  };
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || (text.back() == ']' && text.front() == '[')) {
    return wrong("has no port");
  }
  const std::string host(text.substr(0, colon));
  const std::string_view digits = text.substr(colon + 1);

  ListenAddress address;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), address.port);
  if (digits.empty() || !is_digit(digits.front()) || error != std::errc{} || end != digits.data() + digits.size()) {
    return wrong("has no port number from 0 to 65535 after its last colon");
  }
  if (host.empty()) {
    return address;
  }
  if (host.front() == '[') {
    address.host = host.back() == ']' ? canonical_address(AF_INET6, host.substr(1, host.size() - 2)) : "";
    return address.host.empty() ? util::Result<ListenAddress>(wrong("has no valid IPv6 address in its brackets"))
                                : address;
  }
  if (host.find(':') != std::string::npos) {
    return wrong("has more than one colon: an IPv6 address needs brackets");
  }
  // Only digits and dots: an IPv4 address is meant, and "127.1" would resolve to something else than it seems.
  const bool numeric = std::all_of(host.begin(), host.end(), [](char c) { return is_digit(c) || c == '.'; });
  address.host = numeric ? canonical_address(AF_INET, host) : canonical_name(host);
  if (address.host.empty()) {
    return wrong(numeric ? "has no valid IPv4 address" : "has no valid host name");
  }
  return address;
}

std::string to_string(const ListenAddress& address) {
  const bool ipv6 = address.host.find(':') != std::string::npos;
  return (ipv6 ? '[' + address.host + ']' : address.host) + ':' + std::to_string(address.port);
}

}  // namespace ssdpulse::config
