// SPDX-License-Identifier: Apache-2.0
// Who may wait for something, so that no client keeps all others from it? So many places, of which one peer has a part
// at most. A peer is an address; of IPv6 its first 64 bits, as a host chooses the others itself. Clients of unix
// sockets are one peer. One thread only.
#pragma once

#include <sys/socket.h>

#include <string>
#include <vector>

namespace ssdpulse::http {

using Peer = std::string;  // bytes of the address

Peer peer_of(const sockaddr* address);  // null: as a unix socket

class Places {
 public:
  Places(unsigned all, unsigned of_one) : all_(all), of_one_(of_one) {}

  bool take(const Peer& peer);  // false: none for this one
  void leave(const Peer& peer);

 private:
  std::size_t all_;
  std::ptrdiff_t of_one_;
  std::vector<Peer> taken_;
};

}  // namespace ssdpulse::http
