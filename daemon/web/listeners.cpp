// SPDX-License-Identifier: Apache-2.0
#include "daemon/web/listeners.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "daemon/config/listen_address.h"
#include "daemon/service/sockets.h"
#include "daemon/util/directory_lock.h"
#include "daemon/util/in_time.h"
#include "daemon/util/log.h"
#include "daemon/util/tcp_listeners.h"

namespace ssdpulse::web {
namespace {

using Listeners = std::vector<http::Listener>;

constexpr const char* kSocketName = "web";

util::Result<Listeners> take_from_systemd() {
  auto passed = service::take_sockets(kSocketName);
  if (!passed) {
    return tl::make_unexpected(passed.error());
  }
  Listeners listeners;
  util::Result<void> outcome;
  for (util::UniqueFd& socket : passed->wanted) {
    if (auto listener = http::adopt(std::move(socket))) {
      listeners.push_back(std::move(*listener));
    } else if (outcome) {
      outcome = tl::make_unexpected(listener.error());
    }
  }
  if (!outcome) {
    return tl::make_unexpected(outcome.error());
  }
  if (listeners.empty()) {
    std::string others;
    for (const std::string& name : passed->others) {
      others += (others.empty() ? "" : ", ") + name;
    }
    return util::fail("systemd passed no socket named web" + (others.empty() ? "" : " (but " + others + ")") +
                      "; start the daemon through a socket unit with FileDescriptorName=web, or leave out "
                      "--web.systemd-socket");
  }
  return listeners;
}

/// A running daemon has the lock of its history's directory.
bool is_kept(const std::string& history_directory) {
  return !history_directory.empty() && util::file_answers(history_directory) && util::is_locked(history_directory);
}

struct Holder {
  std::string words;  // who has the address
  bool is_ours = false;
};

/// Which of ours has the address already: it is listed twice, or another one stands for all addresses of the port.
const http::Listener* holder_among(const Listeners& ours, const std::vector<util::TcpListener>& holders) {
  const auto holds = [&](const http::Listener& one) {
    struct stat status {};
    return !one.taken && ::fstat(one.socket.get(), &status) == 0 &&
           std::any_of(holders.begin(), holders.end(),
                       [&](const auto& holder) { return holder.inode == status.st_ino; });
  };
  const auto found = std::find_if(ours.begin(), ours.end(), holds);
  return found == ours.end() ? nullptr : &*found;
}

/// Those at the address; if there are none, it is that of all addresses, and somebody has one of them.
std::vector<util::TcpListener> holders_of(const http::Listener& listener) {
  const auto all = util::tcp_listeners().value_or(std::vector<util::TcpListener>{});
  auto holders = util::listeners_at(all, reinterpret_cast<const sockaddr&>(listener.wanted));
  if (holders.empty()) {
    std::copy_if(all.begin(), all.end(), std::back_inserter(holders),
                 [&](const util::TcpListener& one) { return one.port == http::port_of(listener); });
  }
  return holders;
}

/// A program of another user cannot be a daemon of ours, whatever it answers.
Holder holder_of(const http::Listener& listener) {
  Holder holder{"somebody", false};
  for (const util::TcpListener& one : holders_of(listener)) {
    holder.words = "user " + util::user_words(one.user);
    holder.is_ours =
        holder.is_ours || ((one.user == 0 || one.user == ::geteuid()) && util::is_held_by_our_program(one.inode));
  }
  return holder;
}

/// Without privileges it cannot be taken later; and no ordinary user can have taken it.
bool is_privileged(const http::Listener& listener) {
  unsigned first = 1024;
  std::ifstream("/proc/sys/net/ipv4/ip_unprivileged_port_start") >> first;
  return http::port_of(listener) < first;
}

util::Result<Listeners> without_another_daemon(Listeners listeners, const std::string& history_directory) {
  for (const http::Listener& listener : listeners) {
    if (!listener.taken) {
      continue;
    }
    if (const http::Listener* own = holder_among(listeners, holders_of(listener))) {
      return util::fail("cannot listen on " + listener.address + ": web.listen_address has it twice" +
                            (own->address == listener.address ? "" : ", as " + own->address + " includes it") +
                            "; remove one of them",
                        EADDRINUSE);
    }
    const Holder holder = holder_of(listener);
    if (holder.is_ours || is_kept(history_directory)) {
      return util::fail("cannot listen on " + listener.address +
                            ": the port is taken, and another ssdpulse is running; stop it, or choose another port" +
                            (holder.is_ours ? "" : " and history.directory"),
                        EADDRINUSE);
    }
    if (is_privileged(listener)) {
      return util::fail("cannot listen on " + listener.address + ": the port is taken by " + holder.words +
                            "; stop the program that listens there (ss -ltnp), or choose another port",
                        EADDRINUSE);
    }
    log::warning(
        "cannot listen on {}: the port is taken by {}; measuring without it, and trying again every few seconds: stop "
        "the program that listens there (ss -ltnp)",
        listener.address, holder.words);
  }
  return listeners;
}

}  // namespace

util::Result<Listeners> open_web_listeners(const config::Web& web, const std::string& history_directory) {
  if (web.systemd_socket) {
    return take_from_systemd();
  }
  std::vector<http::ListenAddress> addresses;
  for (const std::string& text : web.listen_address) {
    auto address = config::parse_listen_address(text);
    if (!address) {
      return tl::make_unexpected(address.error());
    }
    addresses.push_back({address->host, address->port});
  }
  auto listeners = http::listen_on(addresses, http::Taken::waits);
  return listeners ? without_another_daemon(std::move(*listeners), history_directory) : std::move(listeners);
}

util::Result<std::optional<http::Listener>> open_web_socket(const config::Web& web) {
  if (web.socket.empty()) {
    return std::nullopt;
  }
  auto listener = http::listen_on_unix(web.socket);
  if (!listener) {
    return tl::make_unexpected(listener.error());
  }
  return std::optional<http::Listener>(std::move(*listener));
}

}  // namespace ssdpulse::web
