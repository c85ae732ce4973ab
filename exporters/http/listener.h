// SPDX-License-Identifier: Apache-2.0
// Listener: the listening sockets of the server's addresses; all of them or none. A socket passed in from outside
// (socket activation) is a Listener too.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/util/result.h"
#include "daemon/util/unique_fd.h"

namespace ssdpulse::http {

struct ListenAddress {
  std::string host;        // a name or number; empty: all addresses, IPv6 and IPv4
  std::uint16_t port = 0;  // 0: the kernel chooses
};

struct Listener {
  util::UniqueFd socket;  // listening, non-blocking
  std::string address;    // as bound, with the real port: 127.0.0.1:10936, [::1]:10936
};

/// A name that has several addresses is bound to the first that works. "0.0.0.0" is IPv4 only and "::" IPv6 only.
util::Result<std::vector<Listener>> listen_on(const std::vector<ListenAddress>& addresses);

/// A unix socket for the owner and the group of this process (0660). One that a daemon left behind is replaced; one
/// that somebody listens on, and a file that is not a socket, are errors.
util::Result<Listener> listen_on_unix(const std::string& path);

/// Serves this host alone, over TCP: 127.0.0.0/8 or ::1.
bool is_loopback(const Listener& listener);

/// A socket that was opened elsewhere: bound, listening, TCP or unix.
util::Result<Listener> adopt(util::UniqueFd socket);

}  // namespace ssdpulse::http
