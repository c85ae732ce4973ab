// SPDX-License-Identifier: Apache-2.0
#include "exporters/http/peer_quota.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>

namespace ssdpulse::http {
namespace {

template <typename Address>
Peer bytes_of(const Address& address, std::size_t from, std::size_t size) {
  return {reinterpret_cast<const char*>(&address) + from, size};
}

/// A process of this host chooses freely among the addresses of the loopback network.
Peer peer_of_v4(const in_addr& v4) {
  return bytes_of(ntohl(v4.s_addr) >> IN_CLASSA_NSHIFT == IN_LOOPBACKNET ? in_addr{htonl(INADDR_LOOPBACK)} : v4, 0,
                  sizeof(v4));
}

}  // namespace

Peer peer_of(const sockaddr* address) {
  constexpr std::size_t kNetwork = 8;  // bytes of an IPv6 address
  if (address != nullptr && address->sa_family == AF_INET) {
    return peer_of_v4(reinterpret_cast<const sockaddr_in*>(address)->sin_addr);
  }
  if (address != nullptr && address->sa_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
    if (IN6_IS_ADDR_V4MAPPED(&v6)) {
      in_addr v4{};
      std::memcpy(&v4, reinterpret_cast<const char*>(&v6) + sizeof(v6) - sizeof(v4), sizeof(v4));
      return peer_of_v4(v4);
    }
    return bytes_of(v6, 0, kNetwork);
  }
  return {};
}

std::string words_of(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN] = "a unix socket";
  if (address != nullptr && address->sa_family == AF_INET) {
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, text, sizeof text);
  } else if (address != nullptr && address->sa_family == AF_INET6) {
    ::inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, text, sizeof text);
  }
  return text;
}

bool PeerQuota::take(const Peer& peer) {
  if (taken_.size() >= all_ || std::count(taken_.begin(), taken_.end(), peer) >= of_one_) {
    return false;
  }
  taken_.push_back(peer);
  return true;
}

void PeerQuota::leave(const Peer& peer) {
  if (const auto one = std::find(taken_.begin(), taken_.end(), peer); one != taken_.end()) {
    taken_.erase(one);
  }
}

}  // namespace ssdpulse::http
