// SPDX-License-Identifier: Apache-2.0
#include "daemon/runtime/web_listeners.h"

#include <systemd/sd-daemon.h>

#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "daemon/config/listen_address.h"

namespace ssdpulse::runtime {
namespace {

using Listeners = std::vector<http::Listener>;

constexpr std::string_view kSocketName = "web";

util::Result<Listeners> take_from_systemd() {
  char** names = nullptr;
  const int count = sd_listen_fds_with_names(1, &names);  // 1: no child process is to take them for its own
  if (count < 0) {
    return util::fail_errno("cannot take sockets from systemd", -count);
  }
  Listeners listeners;
  std::string others;
  util::Result<void> outcome;
  for (int i = 0; i < count; ++i) {
    util::UniqueFd socket(SD_LISTEN_FDS_START + i);
    if (names[i] != kSocketName) {
      others += (others.empty() ? "" : ", ") + std::string(names[i]);
      static_cast<void>(socket.release());  // someone else's
    } else if (auto listener = http::adopt(std::move(socket))) {
      listeners.push_back(std::move(*listener));
    } else if (outcome) {
      outcome = tl::make_unexpected(listener.error());
    }
  }
  for (int i = 0; i < count; ++i) {
    std::free(names[i]);
  }
  std::free(names);
  if (!outcome) {
    return tl::make_unexpected(outcome.error());
  }
  if (listeners.empty()) {
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

}  // namespace ssdpulse::runtime
