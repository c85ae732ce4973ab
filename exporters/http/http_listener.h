// SPDX-License-Identifier: Apache-2.0
// Listener: the listening sockets of the server's addresses; all of them or none, but for those that somebody else has.
// A socket passed in from outside (socket activation) is a Listener too.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/base/file_descriptor.h"
#include "daemon/base/result.h"

namespace ssdpulse::http {

struct ListenAddress {
  std::string host;        // a name or number; empty: all addresses, IPv6 and IPv4
  std::uint16_t port = 0;  // 0: the kernel chooses
};

struct Listener {
  util::UniqueFd socket;  // listening unless `taken`, non-blocking
  std::string address;    // as bound, with the real port: 127.0.0.1:10936, [::1]:10936
  bool taken = false;     // somebody else listens there: see listen_again()
  sockaddr_storage wanted = {};
  socklen_t wanted_size = 0;
};

enum class Taken : std::uint8_t { fails, waits };  // what happens to an address that somebody else has

/// A name that has several addresses is bound to the first that works. "0.0.0.0" is IPv4 only and "::" IPv6 only.
util::Result<std::vector<Listener>> listen_on(const std::vector<ListenAddress>& addresses, Taken taken = Taken::fails);

/// Tries once more to listen where somebody else did; a process that may open no socket can do that. False: errno.
bool listen_again(Listener& listener);

/// A unix socket for the owner and the group of this process (0660). One that a daemon left behind is replaced; one
/// that somebody listens on, and a file that is not a socket, are errors.
util::Result<Listener> listen_on_unix(const std::string& path);

/// 0: not TCP.
std::uint16_t port_of(const Listener& listener);

/// Serves this host alone, over TCP: 127.0.0.0/8 or ::1.
bool is_loopback(const Listener& listener);

/// A socket that was opened elsewhere: bound, listening, TCP or unix.
util::Result<Listener> adopt(util::UniqueFd socket);

}  // namespace ssdpulse::http
