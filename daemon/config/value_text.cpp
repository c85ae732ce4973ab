// SPDX-License-Identifier: Apache-2.0
#include "daemon/config/value_text.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <limits>
#include <system_error>

#include "daemon/config/yaml_document.h"

namespace ssdpulse::config {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};

// Each table by descending factor: the writer takes the first that divides; an error names the units in this order.
constexpr Unit kDurationUnits[] = {{"d", 86'400'000'000'000},
                                   {"h", 3'600'000'000'000},
                                   {"m", 60'000'000'000},
                                   {"s", 1'000'000'000},
                                   {"ms", 1'000'000},
                                   {"us", 1'000},
                                   {"ns", 1}};
constexpr Unit kSizeUnits[] = {{"TiB", std::uint64_t{1} << 40U},
                               {"TB", 1'000'000'000'000},
                               {"GiB", std::uint64_t{1} << 30U},
                               {"GB", 1'000'000'000},
                               {"MiB", std::uint64_t{1} << 20U},
                               {"MB", 1'000'000},
                               {"KiB", std::uint64_t{1} << 10U},
                               {"kB", 1'000},
                               {"B", 1}};

template <std::size_t N>
std::string names_of(const Unit (&units)[N]) {
  std::string names;
  for (const Unit& unit : units) {
    names += (names.empty() ? "" : ", ") + std::string(unit.name);
  }
  return names;
}

template <std::size_t N>
util::Result<std::uint64_t> parse_quantity(std::string_view text, const Unit (&units)[N], std::uint64_t max,
                                           std::string_view example) {
  const auto wrong = [&](const std::string& why) {
    return util::fail(in_quotes(text) + " " + why + "; expected a whole number and a unit (" + names_of(units) +
                      "), for example " + std::string(example));
  };
  std::uint64_t number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc::result_out_of_range) {
    return wrong("is too large");
  }
  if (error != std::errc{}) {
    return wrong(!text.empty() && text.front() == '-' ? "is negative" : "does not begin with a number");
  }
  const std::string_view name = text.substr(static_cast<std::size_t>(rest - text.data()));
  if (name.empty()) {
    return wrong("has no unit");
  }
  if (name.front() == '.' || name.front() == ',') {
    return wrong("has a fraction");
  }
  for (const Unit& unit : units) {
    if (unit.name == name) {
      return number <= max / unit.factor ? util::Result<std::uint64_t>(number * unit.factor) : wrong("is too large");
    }
  }
  return wrong("has the unknown unit " + in_quotes(name));
}

template <std::size_t N>
std::string format_quantity(std::uint64_t amount, const Unit (&units)[N], std::string_view zero) {
  if (amount == 0) {
    return std::string(zero);
  }
  for (const Unit& unit : units) {
    if (amount % unit.factor == 0) {
      return std::to_string(amount / unit.factor) + std::string(unit.name);
    }
  }
  return {};  // not reached: every table ends with factor 1
}

constexpr std::size_t kMaxHostName = 253;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// The address as inet_ntop spells it, so that duplicates can be detected; empty if it is not an address.
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

util::Result<std::chrono::nanoseconds> parse_duration(std::string_view text) {
  constexpr std::uint64_t kMaxNanoseconds = std::numeric_limits<std::int64_t>::max();
  return parse_quantity(text, kDurationUnits, kMaxNanoseconds, "30s").map([](std::uint64_t ns) {
    return std::chrono::nanoseconds(static_cast<std::int64_t>(ns));
  });
}

util::Result<std::uint64_t> parse_size(std::string_view text) {
  return parse_quantity(text, kSizeUnits, std::numeric_limits<std::uint64_t>::max(), "64MiB");
}

std::string format_duration(std::chrono::nanoseconds duration) {
  return format_quantity(static_cast<std::uint64_t>(duration.count()), kDurationUnits, "0s");
}

std::string format_size(std::uint64_t bytes) { return format_quantity(bytes, kSizeUnits, "0B"); }

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
