// SPDX-License-Identifier: Apache-2.0
#include "daemon/web/listeners.h"

#include <string>
#include <utility>

#include "daemon/config/listen_address.h"
#include "daemon/service/sockets.h"

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

}  // namespace

util::Result<Listeners> open_web_listeners(const config::Web& web) {
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
  return http::listen_on(addresses);
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
