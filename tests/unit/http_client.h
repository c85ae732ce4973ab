// SPDX-License-Identifier: Apache-2.0
// A client that can misbehave, with raw sockets, for the tests of the HTTP server.
#pragma once

#include <arpa/inet.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "daemon/base/file_descriptor.h"
#include "exporters/http/http_listener.h"
#include "exporters/http/http_server.h"

namespace ssdpulse::test {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// A busy host is slow: only what has not happened by then is considered not to happen. Server deadlines that are not
/// under test are longer.
inline constexpr std::chrono::milliseconds kTimeout = 20s;

/// Waits for something that the server does without telling the client.
template <typename Condition>
bool soon(Condition condition) {
  for (const auto deadline = Clock::now() + kTimeout; !condition() && Clock::now() < deadline;) {
    std::this_thread::sleep_for(5ms);
  }
  return condition();
}

inline std::uint16_t port_of(const std::string& address) {
  return static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
}

/// Listens on a free port of 127.0.0.1.
inline std::vector<http::Listener> local_listener() {
  auto listeners = http::listen_on({{"127.0.0.1", 0}});
  return listeners ? std::move(*listeners) : std::vector<http::Listener>{};
}

/// Each address of the loopback network for itself, unlike http::peer_of().
inline http::Peer each_address(const sockaddr* address) {
  const auto& v4 = reinterpret_cast<const sockaddr_in*>(address)->sin_addr;
  return {reinterpret_cast<const char*>(&v4), sizeof v4};
}

class Client {
 public:
  /// receive_buffer: if small, a client that does not read soon stalls the server. `from`: the client's address.
  explicit Client(std::uint16_t port, int receive_buffer = 0, const char* from = "127.0.0.1")
      : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (receive_buffer != 0) {
      ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof(receive_buffer));
    }
    sockaddr_in address{};
    address.sin_family = AF_INET;
    ::inet_pton(AF_INET, from, &address.sin_addr);
    ::bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address));
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  }

  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] bool connected() const { return connected_; }

  bool send(const std::string& bytes) {
    return ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
  }

  bool get(const std::string& path, const std::string& headers = {}) {
    return send("GET " + path + " HTTP/1.1\r\nHost: here\r\n" + headers + "\r\n");
  }

  /// Reads at most `most` more bytes; false at the end of the stream, on a reset and after the timeout.
  bool receive(std::size_t most, std::chrono::milliseconds timeout) {
    pollfd polled{fd_.get(), POLLIN, 0};
    if (::poll(&polled, 1, static_cast<int>(timeout.count())) != 1) {
      return false;
    }
    std::string more(most, '\0');
    const auto got = ::recv(fd_.get(), more.data(), more.size(), 0);
    if (got <= 0) {
      closed_ = true;
      return false;
    }
    received_.append(more, 0, static_cast<std::size_t>(got));
    return true;
  }

  /// Reads one answer: the headers, and as many bytes as they announce. Keeps what follows.
  std::string answer(bool with_body = true) {
    const auto deadline = Clock::now() + kTimeout;
    std::size_t needed = std::string::npos;
    while (received_.size() < needed && Clock::now() < deadline) {
      const auto end = received_.find("\r\n\r\n");
      if (end != std::string::npos) {
        const auto length = header(received_, "Content-Length");
        needed = end + 4 + (with_body && !length.empty() ? std::stoul(length) : 0);
        if (received_.size() >= needed) {
          break;
        }
      }
      if (!receive(1 << 16, kTimeout)) {
        break;
      }
    }
    const auto result = received_.substr(0, needed);
    received_.erase(0, needed);
    return result;
  }

  /// Waits until the server has closed or reset the connection.
  bool is_closed() {
    const auto deadline = Clock::now() + kTimeout;
    while (!closed_ && Clock::now() < deadline) {
      receive(1 << 20, 20ms);
      received_.clear();
    }
    return closed_;
  }

  static int status(const std::string& answer) { return answer.size() < 12 ? 0 : std::stoi(answer.substr(9, 3)); }
  static std::string body(const std::string& answer) { return answer.substr(answer.find("\r\n\r\n") + 4); }
  static std::string header(const std::string& answer, const std::string& name) {
    const auto at = answer.find("\r\n" + name + ": ");
    if (at == std::string::npos) {
      return {};
    }
    const auto begin = at + name.size() + 4;
    return answer.substr(begin, answer.find("\r\n", begin) - begin);
  }

 private:
  util::UniqueFd fd_;
  bool connected_ = false;
  bool closed_ = false;
  std::string received_;
};

inline std::size_t open_fds() {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    static_cast<void>(entry);
    ++count;
  }
  return count;
}

/// Anonymous memory in KiB.
inline std::size_t anonymous_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word == "RssAnon:") {
      std::size_t kib = 0;
      status >> kib;
      return kib;
    }
  }
  return 0;
}

inline void allow_many_fds() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace ssdpulse::test
