// SPDX-License-Identifier: Apache-2.0
#include "daemon/client/trust.h"

#include <netdb.h>
#include <netinet/in.h>
#include <pwd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string_view>

#include "daemon/client/api.h"
#include "daemon/util/tcp_listeners.h"

namespace ssdpulse::client {
namespace {

constexpr const char* kServiceUser = "ssdpulse";
constexpr const char* kServiceDirectory = "/run/ssdpulse";  // only root can make it: it belongs to the unit's user

bool is_user_of_service(std::uint32_t user) {
  struct stat directory {};
  if (::lstat(kServiceDirectory, &directory) == 0 && directory.st_uid == user) {
    return true;
  }
  std::array<char, 4096> text{};
  passwd entry{};
  passwd* found = nullptr;
  return ::getpwnam_r(kServiceUser, &entry, text.data(), text.size(), &found) == 0 && found != nullptr &&
         found->pw_uid == user;
}

/// Empty if this user may be a daemon's.
std::string distrust_of(std::uint32_t user, const std::string& where) {
  if (user == 0 || user == ::geteuid() || is_user_of_service(user)) {
    return "";
  }
  return "user " + util::user_words(user) + " listens on " + where +
         ", who is neither root, nor the service's user, nor you: what answers there can be forged";
}

bool is_loopback(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    return ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr) >> IN_CLASSA_NSHIFT == IN_LOOPBACKNET;
  }
  return address.sa_family == AF_INET6 &&
         IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
}

}  // namespace

std::string distrust_of_socket(const std::string& path) {
  const auto user = listening_user(path);
  return user ? distrust_of(*user, path) : "";
}

std::string distrust_of_url(const std::string& url, Checked checked) {
  constexpr std::string_view kScheme = "http://";
  if (!url.starts_with(kScheme)) {
    return "";
  }
  const std::string_view authority =
      std::string_view(url).substr(kScheme.size(), url.find('/', kScheme.size()) - kScheme.size());
  const std::size_t colon = authority.rfind(':');
  const bool has_port = colon != std::string_view::npos && authority.find(']', colon) == std::string_view::npos;
  std::string host(authority.substr(authority.find('@') + 1, std::string_view::npos));
  host = host.substr(0, has_port ? host.rfind(':') : std::string::npos);
  if (host.size() > 1 && host.front() == '[') {
    host = host.substr(1, host.size() - 2);
  }
  const std::string port(has_port ? authority.substr(colon + 1) : "80");
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  if (checked == Checked::of_loopback && host != "localhost") {
    hints.ai_flags = AI_NUMERICHOST;  // asks no name server about another host
  }
  addrinfo* found = nullptr;
  const auto listeners = util::tcp_listeners();
  if (!listeners || ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) {
    return "";
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(found, ::freeaddrinfo);
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    if (checked == Checked::of_loopback && !is_loopback(*one->ai_addr)) {
      continue;
    }
    for (const util::TcpListener& listener : util::listeners_at(*listeners, *one->ai_addr)) {
      if (std::string words = distrust_of(listener.user, url); !words.empty()) {
        return words;
      }
    }
  }
  return "";
}

}  // namespace ssdpulse::client
