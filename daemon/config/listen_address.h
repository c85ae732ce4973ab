// SPDX-License-Identifier: Apache-2.0
// Listen addresses of the web server: HOST:PORT, [IPV6]:PORT or :PORT, split into host and port. Resolves no name and
// opens no socket.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "daemon/util/result.h"

namespace ssdpulse::config {

struct ListenAddress {
  std::string host;        // name or address in its canonical spelling, IPv6 without brackets; empty: every address
  std::uint16_t port = 0;  // 0: any free port
  bool operator==(const ListenAddress&) const = default;
};

util::Result<ListenAddress> parse_listen_address(std::string_view text);

/// The spelling that parse_listen_address reads back.
std::string to_string(const ListenAddress& address);

}  // namespace ssdpulse::config
