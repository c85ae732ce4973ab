// SPDX-License-Identifier: Apache-2.0
#include "daemon/serve/web_server.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <utility>

#include "daemon/base/child_process.h"
#include "daemon/base/file_descriptor.h"
#include "daemon/base/log.h"
#include "daemon/base/service_manager.h"
#include "daemon/base/tcp_listeners.h"
#include "daemon/config/value_text.h"

namespace ssdpulse::serve {
namespace {

using Listeners = std::vector<http::Listener>;
using log::field;

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
  std::string user;  // who has the address
  bool is_ours = false;
};

/// The listener of ours that has the address already: it is listed twice, or another stands for all of the port.
const http::Listener* holder_among(const Listeners& ours, const std::vector<util::TcpListener>& holders) {
  const auto holds = [&](const http::Listener& listener) {
    struct stat status {};
    return !listener.taken && ::fstat(listener.socket.get(), &status) == 0 &&
           std::any_of(holders.begin(), holders.end(),
                       [&](const auto& holder) { return holder.inode == status.st_ino; });
  };
  const auto found = std::find_if(ours.begin(), ours.end(), holds);
  return found == ours.end() ? nullptr : &*found;
}

/// The sockets at the address; if there are none, it stands for all addresses, and somebody has one of them.
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
  for (const util::TcpListener& socket : holders_of(listener)) {
    holder.user = "user " + util::user_text(socket.user);
    holder.is_ours = holder.is_ours ||
                     ((socket.user == 0 || socket.user == ::geteuid()) && util::is_held_by_our_program(socket.inode));
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
      return util::fail("cannot listen on " + listener.address + ": the port is taken by " + holder.user +
                            "; stop the program that listens there (ss -ltnp), or choose another port",
                        EADDRINUSE);
    }
    log::warning(
        "cannot listen on {}: the port is taken by {}; measuring without it, and trying again every few seconds: stop "
        "the program that listens there (ss -ltnp)",
        listener.address, holder.user);
  }
  return listeners;
}

// For people at a terminal, and a script or two.
http::Limits limits_of_local_server() {
  http::Limits limits;
  limits.connections = 64;
  limits.lanes = {{{1, 32, 32}, {1, 32, 32}, {1, 16, 16}}};
  return limits;
}

tl::unexpected<util::ExitCode> fail(const util::Error& error) {
  log::error("{}", error.message);
  return tl::make_unexpected(util::ExitCode::failure);
}

/// Records the protection for the next start.
void remember(const std::string& directory, const ProtectionKinds& kinds) {
  if (directory.empty()) {
    return;
  }
  if (auto kept = keep_protection(directory, kinds); !kept) {
    log::warning("the next start will not know how the pages are protected now: {}", kept.error().message);
  }
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

tl::expected<LoadedWebSecurity, util::ExitCode> WebServer::read(const std::string& config_file) {
  auto security = config_file.empty() ? LoadedWebSecurity{.outcome = nullptr, .file_is_right = true}
                                      : load_web_security(config_file);
  if (!security.outcome) {
    for (const std::string& problem : security.outcome.error()) {
      log::error("{}", problem);
    }
    return tl::make_unexpected(security.file_is_right ? util::ExitCode::failure : util::ExitCode::usage);
  }
  return security;
}

tl::expected<void, util::ExitCode> WebServer::compare_with_last_run(const LoadedWebSecurity& security,
                                                                    const std::string& directory, bool allow_less) {
  if (directory.empty()) {
    return {};
  }
  const auto kept = kept_protection(directory);
  if (!kept) {
    if (kept.error().error_number != EACCES) {  // then this process may not measure either, and says so
      log::warning("not known how the last run protected the pages: {}", kept.error().message);
    }
    return {};
  }
  const std::string lost = lost_protection(*kept, kinds_of(security.outcome->get()));
  if (lost.empty()) {
    return {};
  }
  if (allow_less) {
    log::warning("the pages are less protected than in the last run: without {}", lost);
    return {};
  }
  log::error(
      "the last run protected its pages by {}, which web.config_file no longer asks for: put that back, or start "
      "once with --web.allow-less-protection",
      lost);
  return tl::make_unexpected(util::ExitCode::usage);
}

tl::expected<std::unique_ptr<WebServer>, util::ExitCode> WebServer::start(std::vector<http::Listener> listeners,
                                                                          std::optional<http::Listener> local,
                                                                          http::Routes routes,
                                                                          const std::string& config_file,
                                                                          const std::string& directory) {
  auto security = read(config_file);
  if (!security) {
    return tl::make_unexpected(security.error());
  }
  const auto protection = *security->outcome;
  const char* scheme = protection && protection->tls ? "https" : "http";
  std::vector<std::string> addresses;
  for (const http::Listener& listener : listeners) {
    if (!listener.taken) {
      addresses.push_back(listener.address);
    }
  }
  const bool has_page = routes.count("/api/v1/*") > 0;
  std::unique_ptr<http::Server> local_server;
  if (local) {
    const std::string address = local->address;
    std::vector<http::Listener> sockets;
    sockets.push_back(std::move(*local));
    auto started = http::Server::start(std::move(sockets), routes, limits_of_local_server());
    if (!started) {
      return fail(started.error());
    }
    local_server = std::move(*started);
    log::info("serving", field("url", address), field("users", "group"));
  }
  auto server = http::Server::start(std::move(listeners), std::move(routes), {}, protection);
  if (!server) {
    return fail(server.error());
  }
  const auto [tls, users, certificates] = fields_of(kinds_of(protection.get()));
  for (const std::string& address : addresses) {
    log::info("serving", field("url", "{}://{}/metrics", scheme, address), tls, users, certificates);
  }
  const auto is_tcp = [](const std::string& address) { return address.find(':') != std::string::npos; };
  const auto found = std::find_if(addresses.begin(), addresses.end(), is_tcp);
  if (has_page && found != addresses.end()) {
    const std::string& address = *found;
    const std::string port = address.substr(address.rfind(':') + 1);
    log::info("page", field("url", "{}://{}/", scheme, address),
              log::quoted("from_elsewhere", "ssh -L " + port + ":" + address + " THIS_HOST"));
  }
  remember(directory, kinds_of(protection.get()));
  auto web = std::make_unique<WebServer>();
  web->server_ = std::move(*server);
  web->local_server_ = std::move(local_server);
  if (!config_file.empty()) {
    web->watch_ = std::make_unique<WebSecurityWatch>(
        config_file, std::move(*security),
        [&running = *web->server_, directory](std::shared_ptr<const http::Protection> next) {
          const ProtectionKinds kinds = kinds_of(next.get());
          const bool used = running.protect(std::move(next));
          if (used) {
            remember(directory, kinds);
          }
          return used;
        });
  }
  return web;
}

void WebServer::reload() {
  if (watch_) {
    watch_->reload();
  }
}

void WebServer::describe(model::Snapshot& snapshot) const {
  model::WebFigures figures{};
  for (const http::Server* server : {server_.get(), local_server_.get()}) {
    const auto counters = server != nullptr ? server->counters() : http::Counters{};
    figures.answers += counters.answered;
    figures.refused_requests += counters.refused;
    figures.refused_logins += counters.refused_logins;
    figures.refused_unread += counters.refused_unread;
    figures.refused_users += counters.unauthorized;
    figures.cut_connections += counters.cut;
    figures.accept_errors += counters.accept_errors;
    figures.failed_handshakes += counters.failed_handshakes;
    figures.connections += counters.connections;
  }
  snapshot.web = figures;
  model::SourceStatus listening;
  listening.name = "web";
  const auto taken = server_->taken();
  listening.up = taken.empty();
  listening.errors = {{"listen", server_->counters().failed_listens}};
  for (const std::string& address : taken) {
    listening.reason += (listening.reason.empty() ? "another program listens on " : " and ") + address;
  }
  if (!taken.empty()) {
    listening.reason += ": nothing is served there, and its answers are not ours";
    listening.remedy = "ss -ltnp  # shows which; once it is stopped, the daemon serves there within seconds";
  }
  snapshot.sources.push_back(std::move(listening));
  if (watch_) {
    model::SourceStatus status;
    status.name = "web_config";
    status.up = watch_->good();
    status.reason = status.up ? "" : "the file was changed and cannot be used; see the log";
    status.errors = {{"read", watch_->failures()}};
    snapshot.sources.push_back(std::move(status));
  }
}

void WebServer::stop() {
  // First: the watch may be waiting for a disk that hangs, and the next daemon needs the address.
  server_->stop();
  if (local_server_) {
    local_server_->stop();
  }
  watch_.reset();
}

}  // namespace ssdpulse::serve
