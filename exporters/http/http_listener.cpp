// SPDX-License-Identifier: Apache-2.0
#include "exporters/http/http_listener.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <utility>

namespace ssdpulse::http {
namespace {

using util::fail;
using util::Result;
using util::UniqueFd;

// Bounded by net.core.somaxconn: a thousand clients at one instant fit if that is 4096 (Linux >= 5.4).
constexpr int kBacklog = 4096;

std::string join(const std::string& host, const std::string& port) {
  return (host.find(':') == std::string::npos ? host : "[" + host + "]") + ":" + port;
}

// With the address that it has, or waits for.
Result<Listener> named(Listener listener) {
  sockaddr_storage storage = listener.wanted;
  socklen_t length = listener.taken ? listener.wanted_size : sizeof(storage);
  auto* address = reinterpret_cast<sockaddr*>(&storage);
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  if (!listener.taken && ::getsockname(listener.socket.get(), address, &length) != 0) {
    return util::fail_errno("getsockname");
  }
  if (storage.ss_family == AF_UNIX) {
    listener.address = "unix";
    return listener;
  }
  if (const int error = ::getnameinfo(address, length, host.data(), host.size(), port.data(), port.size(),
                                      NI_NUMERICHOST | NI_NUMERICSERV);
      error != 0) {
    return fail(std::string("getnameinfo: ") + ::gai_strerror(error));
  }
  listener.address = join(host.data(), port.data());
  return listener;
}

tl::unexpected<util::Error> explain(const std::string& wanted, int error_number) {
  const auto message = "cannot listen on " + wanted;
  switch (error_number) {
    case EADDRINUSE:
      return fail(message + ": the port is taken; stop the program that listens there (ss -ltnp) or choose another",
                  error_number);
    case EACCES:
    case EPERM:
      return fail(message + ": not permitted; choose a port of 1024 or above, or grant CAP_NET_BIND_SERVICE",
                  error_number);
    case EADDRNOTAVAIL:
      return fail(message + ": this host does not have that address; its own are listed by `ip address`", error_number);
    default:
      return util::fail_errno(message, error_number);
  }
}

UniqueFd socket_for(const addrinfo& candidate, bool dual_stack) {
  UniqueFd fd(::socket(candidate.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int on = 1;
  const int v6_only = dual_stack ? 0 : 1;
  if (fd.valid()) {
    ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  }
  if (fd.valid() && candidate.ai_family == AF_INET6) {
    ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &v6_only, sizeof(v6_only));
  }
  return fd;
}

bool is_bound(int fd) {
  sockaddr_storage bound{};
  socklen_t length = sizeof(bound);
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &length) != 0) {
    return false;
  }
  return bound.ss_family == AF_INET ? reinterpret_cast<const sockaddr_in&>(bound).sin_port != 0
                                    : reinterpret_cast<const sockaddr_in6&>(bound).sin6_port != 0;
}

// What is left to do if only listen() failed: two programs may bind an address, and one listens.
bool bind_and_listen(int fd, const sockaddr* address, socklen_t size) {
  return (is_bound(fd) || ::bind(fd, address, size) == 0) && ::listen(fd, kBacklog) == 0;
}

Result<Listener> listen_on(const ListenAddress& wanted, Taken taken) {
  const auto port = std::to_string(wanted.port);
  const auto text = join(wanted.host, port);
  // Without a host: the IPv6 wildcard serves IPv4 too; if the kernel has no IPv6, the IPv4 wildcard is used.
  const bool everywhere = wanted.host.empty();
  const std::vector<const char*> hosts =
      everywhere ? std::vector<const char*>{"::", "0.0.0.0"} : std::vector<const char*>{wanted.host.c_str()};
  int error_number = EADDRNOTAVAIL;
  for (const char* host : hosts) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
    addrinfo* found = nullptr;
    if (const int error = ::getaddrinfo(host, port.c_str(), &hints, &found); error != 0) {
      return fail("cannot listen on " + text + ": the name has no address (" + ::gai_strerror(error) +
                  "); name an address of this host, or none to listen on all of them");
    }
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> candidates(found, ::freeaddrinfo);
    for (const auto* candidate = found; candidate != nullptr; candidate = candidate->ai_next) {
      Listener listener{socket_for(*candidate, everywhere), ""};
      const int fd = listener.socket.get();
      if (fd >= 0 && bind_and_listen(fd, candidate->ai_addr, candidate->ai_addrlen)) {
        return named(std::move(listener));
      }
      error_number = errno;
      if (fd >= 0 && error_number == EADDRINUSE && taken == Taken::waits) {
        listener.taken = true;
        std::memcpy(&listener.wanted, candidate->ai_addr, candidate->ai_addrlen);
        listener.wanted_size = candidate->ai_addrlen;
        return named(std::move(listener));
      }
    }
    if (error_number != EAFNOSUPPORT && error_number != EADDRNOTAVAIL) {
      break;
    }
  }
  return explain(text, error_number);
}

}  // namespace

Result<std::vector<Listener>> listen_on(const std::vector<ListenAddress>& addresses, Taken taken) {
  std::vector<Listener> listeners;
  for (const auto& address : addresses) {
    auto listener = listen_on(address, taken);
    if (!listener) {
      return tl::unexpected(std::move(listener.error()));
    }
    listeners.push_back(std::move(*listener));
  }
  return listeners;
}

Result<Listener> listen_on_unix(const std::string& path) {
  const auto message = "cannot listen on unix:" + path;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return fail(message + ": the path is longer than " + std::to_string(sizeof(address.sun_path) - 1) +
                    " bytes; choose a shorter one",
                ENAMETOOLONG);
  }
  std::memcpy(address.sun_path, path.c_str(), path.size());
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  struct stat found {};
  if (::lstat(path.c_str(), &found) == 0) {
    if (!S_ISSOCK(found.st_mode)) {
      return fail(message + ": a file of that name exists and is not a socket; remove it, or choose another path",
                  EEXIST);
    }
    const UniqueFd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (::connect(probe.get(), generic, sizeof(address)) == 0 || errno == EAGAIN) {
      return fail(message + ": another program listens there (ss -lxp); stop it, or choose another path", EADDRINUSE);
    }
    if (errno == ECONNREFUSED) {
      ::unlink(path.c_str());
    }
  }
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  // Nobody can connect before listen(), so the socket's mode is right from the first connection on.
  if (!socket.valid() || ::bind(socket.get(), generic, sizeof(address)) != 0 || ::chmod(path.c_str(), 0660) != 0 ||
      ::listen(socket.get(), kBacklog) != 0) {
    return util::fail_errno(message);
  }
  return Listener{std::move(socket), "unix:" + path};
}

Result<Listener> adopt(UniqueFd socket) {
  const auto option = [&](int name) {
    int value = 0;
    socklen_t length = sizeof(value);
    return ::getsockopt(socket.get(), SOL_SOCKET, name, &value, &length) == 0 ? value : -1;
  };
  if (option(SO_TYPE) != SOCK_STREAM || option(SO_ACCEPTCONN) != 1) {
    return fail("a socket that was passed does not listen for connections; expected ListenStream= in its unit");
  }
  const int flags = ::fcntl(socket.get(), F_GETFL);
  if (flags < 0 || ::fcntl(socket.get(), F_SETFL, flags | O_NONBLOCK) != 0 ||
      ::fcntl(socket.get(), F_SETFD, FD_CLOEXEC) != 0) {
    return util::fail_errno("a socket that was passed");
  }
  return named({std::move(socket), ""});
}

bool listen_again(Listener& listener) {
  listener.taken = !bind_and_listen(listener.socket.get(), reinterpret_cast<const sockaddr*>(&listener.wanted),
                                    listener.wanted_size);
  return !listener.taken;
}

std::uint16_t port_of(const Listener& listener) {
  std::uint16_t port = 0;
  const std::string& address = listener.address;
  const std::size_t colon = address.rfind(':');
  if (colon != std::string::npos) {
    std::from_chars(address.data() + colon + 1, address.data() + address.size(), port);
  }
  return port;
}

bool is_loopback(const Listener& listener) {
  return listener.address.starts_with("127.") || listener.address.starts_with("[::1]:");
}

}  // namespace ssdpulse::http
