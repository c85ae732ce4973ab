// SPDX-License-Identifier: Apache-2.0
// TcpListener: a socket that listens on a TCP port of this host, as the kernel shows it to everybody (proc_net_tcp(5)).
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ssdpulse::util {

struct TcpListener {
  std::string address;  // bytes in the order of the network: 4, or 16 of IPv6; all zero: every address
  std::uint16_t port = 0;
  std::uint32_t user = 0;  // whose socket it is
  std::uint64_t inode = 0;
};

/// Nothing if the kernel does not show them.
std::optional<std::vector<TcpListener>> tcp_listeners(const std::string& proc = "/proc");

/// The listeners that get the connections to this address and port: the most specific of all that would.
std::vector<TcpListener> listeners_at(const std::vector<TcpListener>& all, const sockaddr& address);

/// The user's name and number: root (0).
std::string user_text(std::uint32_t user);

/// Whether another process whose files this one may list runs the same program as this one and holds that socket.
bool is_held_by_our_program(std::uint64_t inode);

}  // namespace ssdpulse::util
