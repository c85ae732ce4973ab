// SPDX-License-Identifier: Apache-2.0
// PeerQuota: a bounded number of waiting requests, of which one peer may have only a part, so that no client locks out
// the others. A peer is an address (the first 64 bits for IPv6, because a host chooses the rest itself, and 127.0.0.0/8
// as a whole). Clients of unix sockets are one peer. Used by one thread only.
#pragma once

#include <sys/socket.h>

#include <string>
#include <vector>

namespace ssdpulse::http {

using Peer = std::string;  // bytes of the address

Peer peer_of(const sockaddr* address);  // null: as a unix socket

/// The address as people write it, without its port; "a unix socket" for null and other families.
std::string words_of(const sockaddr* address);

class PeerQuota {
 public:
  PeerQuota(unsigned all, unsigned of_one) : all_(all), of_one_(of_one) {}

  bool take(const Peer& peer);  // false: none left for this peer
  void leave(const Peer& peer);

 private:
  std::size_t all_;
  std::ptrdiff_t of_one_;
  std::vector<Peer> taken_;
};

}  // namespace ssdpulse::http
