// SPDX-License-Identifier: Apache-2.0
#include "exporters/http/http_server.h"

#include <arpa/inet.h>
#include <malloc.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "exporters/http/http_server_implementation.h"
#include "exporters/http/http_tls.h"

namespace ssdpulse::http {
namespace {

constexpr std::chrono::milliseconds kAcceptPause{100};  // after running out of descriptors
constexpr std::size_t kCrowdedPeak = 256;               // connections
constexpr std::size_t kNotablePeak = 64;
constexpr std::size_t kLargeBacklogBytes = 8 << 20;  // bytes of answers

template <typename Address>
Peer first_bytes(const Address& address, std::size_t size) {
  return {reinterpret_cast<const char*>(&address), size};
}

/// A process of this host chooses freely among the addresses of the loopback network.
Peer peer_of_v4(const in_addr& v4) {
  return first_bytes(ntohl(v4.s_addr) >> IN_CLASSA_NSHIFT == IN_LOOPBACKNET ? in_addr{htonl(INADDR_LOOPBACK)} : v4,
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
    return first_bytes(v6, kNetwork);
  }
  return {};
}

std::string address_text(const sockaddr* address) {
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
  if (const auto found = std::find(taken_.begin(), taken_.end(), peer); found != taken_.end()) {
    taken_.erase(found);
  }
}

// Accepts connections, moves bytes and keeps deadlines; http_requests.cpp decides what is answered.

util::Result<void> Server::Implementation::start() {
  wake_event_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  hang_ups_.reset(::epoll_create1(EPOLL_CLOEXEC));
  if (!wake_event_.valid() || !hang_ups_.valid()) {
    return util::fail_errno("cannot start the HTTP server: eventfd or epoll");
  }
  for (const auto& listener : listeners_) {
    size_buffers(listener);
  }
  note_taken();
  constexpr unsigned kFlags = MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME;
  MHD_OptionItem tls_options[] = {{MHD_OPTION_HTTPS_CERT_CALLBACK, 0, reinterpret_cast<void*>(no_certificate())},
                                  {MHD_OPTION_END, 0, nullptr}};
  const bool tls = protection_->tls != nullptr;
  // libmicrohttpd's own answers cannot get our headers: with 0, it leaves to us what is_ambiguous() finds, too.
  constexpr int kStrictForClient = 0;
  daemon_ = MHD_start_daemon(tls ? kFlags | MHD_USE_TLS : kFlags, 0, nullptr, nullptr, &on_request, this,
                             MHD_OPTION_URI_LOG_CALLBACK, &on_uri, nullptr, MHD_OPTION_NOTIFY_COMPLETED, &on_completed,
                             this, MHD_OPTION_NOTIFY_CONNECTION, &on_connection, this, MHD_OPTION_CONNECTION_LIMIT,
                             limits_.connections, MHD_OPTION_CONNECTION_MEMORY_LIMIT, limits_.connection_memory,
                             MHD_OPTION_STRICT_FOR_CLIENT, kStrictForClient, MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1,
                             MHD_OPTION_ARRAY, tls ? tls_options : tls_options + 1, MHD_OPTION_END);
  const auto* info = daemon_ == nullptr ? nullptr : MHD_get_daemon_info(daemon_, MHD_DAEMON_INFO_EPOLL_FD);
  if (info == nullptr) {
    return util::fail(tls && MHD_is_feature_supported(MHD_FEATURE_HTTPS_CERT_CALLBACK) == MHD_NO
                          ? "cannot start the HTTP server: this libmicrohttpd has no TLS"
                          : "cannot start the HTTP server: out of memory or file descriptors");
  }
  daemon_fd_ = info->epoll_fd;

  // Threads inherit the mask: signals are only for the main thread, and SIGPIPE must reach no thread.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  constexpr auto kNames = std::to_array<const char*>({"http-scrape", "http-page", "http-history"});
  static_assert(kNames.size() == kThreadedLanes);
  for (std::size_t lane = 0; lane < kThreadedLanes; ++lane) {
    lanes_[lane].workers = std::make_unique<Workers>(limits_.lanes[lane].workers, kNames[lane]);
  }
  login_thread_ = std::make_unique<Logins>();
  thread_ = std::thread([this] {
    ::pthread_setname_np(::pthread_self(), "http");
    loop();
  });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return {};
}

// Accepted sockets inherit these. Best effort: without them the kernel's own limits apply.
void Server::Implementation::size_buffers(const Listener& listener) const {
  const int socket = listener.socket.get();
  ::setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &limits_.send_buffer, sizeof(limits_.send_buffer));
  ::setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &limits_.receive_buffer, sizeof(limits_.receive_buffer));
}

void Server::Implementation::note_taken() {
  const std::lock_guard lock(taken_mutex_);
  taken_.clear();
  for (const auto& listener : listeners_) {
    if (listener.taken) {
      taken_.push_back(listener.address);
    }
  }
  listen_again_ = taken_.empty() ? Clock::time_point::max() : Clock::now() + limits_.taken_time;
}

std::vector<std::string> Server::Implementation::taken() const {
  const std::lock_guard lock(taken_mutex_);
  return taken_;
}

void Server::Implementation::listen_where_taken(Clock::time_point now) {
  if (now < listen_again_) {
    return;
  }
  for (auto& listener : listeners_) {
    if (listener.taken && listen_again(listener)) {
      log::info("the address {} is free again: serving there", listener.address);
    }
    failed_listens_ += listener.taken ? 1 : 0;
  }
  note_taken();
}

void Server::Implementation::stop() {
  stopping_ = true;
  if (thread_.joinable()) {
    wake();
    thread_.join();
  }
  // libmicrohttpd aborts if it is stopped with suspended connections: let the workers resume them all first.
  login_thread_.reset();
  for (LaneState& lane : lanes_) {
    lane.workers.reset();
  }
  if (daemon_ != nullptr) {
    MHD_stop_daemon(std::exchange(daemon_, nullptr));
  }
  listeners_.clear();
}

void Server::Implementation::on_connection(void* self, MHD_Connection* connection, void** context,
                                           MHD_ConnectionNotificationCode code) {
  auto& server = *static_cast<Implementation*>(self);
  if (code == MHD_CONNECTION_NOTIFY_STARTED) {
    const auto* info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    const auto now = Clock::now();
    auto& added =
        server.connections_.add(info->connect_fd, now + server.limits_.request_time, now + server.limits_.pressed_time);
    added.loopback = server.accepting_loopback_;
    *context = &added;
    epoll_event once{};
    once.events = EPOLLRDHUP | EPOLLONESHOT;
    once.data.fd = added.fd;
    // Best effort: without it an unnoticed hang-up is an idle connection. Closing the socket removes it again.
    ::epoll_ctl(server.hang_ups_.get(), EPOLL_CTL_ADD, added.fd, &once);
    if (const auto tls = server.protection()->tls) {
      const auto* session = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
      tls->prepare(static_cast<gnutls_session_t>(session->tls_session), added.handshake);
      added.held = tls;
    }
  } else {
    auto& ended = *static_cast<Connections::Connection*>(*context);
    if (ended.handshake.failed() && !server.stopping_) {
      server.note_failed_handshake(connection, ended.handshake);
    }
    server.connections_.remove(ended);
    *context = nullptr;
  }
  server.open_ = server.connections_.size();
}

void Server::Implementation::note_failed_handshake(MHD_Connection* connection, const Handshake& handshake) {
  ++failed_handshakes_;
  const auto* info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
  if (const auto suppressed = handshake_reasons_.admit(std::string(handshake.reason()))) {
    log::warning("TLS handshake failed", log::field("from", info == nullptr ? "?" : address_text(info->client_addr)),
                 log::quoted("reason", handshake.reason()), log::field("suppressed", *suppressed));
  }
}

Connections::Connection* Server::Implementation::tracked(MHD_Connection* connection) {
  const auto* info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
  return info == nullptr ? nullptr : static_cast<Connections::Connection*>(info->socket_context);
}

void Server::Implementation::set_deadline(MHD_Connection* connection, std::chrono::milliseconds time,
                                          std::chrono::milliseconds pressed_time) {
  if (auto* open = tracked(connection)) {
    const auto now = Clock::now();
    connections_.set_deadline(*open, now + time, now + pressed_time);
  }
}

bool Server::Implementation::protect(std::shared_ptr<const Protection> protection) {
  const std::lock_guard lock(protection_mutex_);
  if ((protection->tls != nullptr) != (protection_->tls != nullptr)) {
    return false;
  }
  protection_ = std::move(protection);
  return true;
}

std::shared_ptr<const Protection> Server::Implementation::protection() const {
  const std::lock_guard lock(protection_mutex_);
  return protection_;
}

void Server::Implementation::loop() {
  std::vector<pollfd> polled;
  while (!stopping_) {
    const auto now = Clock::now();
    cut_ += connections_.cut_overdue(now, full());
    listen_where_taken(now);
    const bool accepting = !full() && now >= accept_again_;
    polled = {{wake_event_.get(), POLLIN, 0}, {hang_ups_.get(), POLLIN, 0}, {daemon_fd_, POLLIN, 0}};
    for (const auto& listener : listeners_) {
      polled.push_back({accepting && !listener.taken ? listener.socket.get() : -1, POLLIN, 0});  // poll skips -1
    }
    ::poll(polled.data(), polled.size(), milliseconds_to_wait(now, accepting));
    if (eventfd_t ignored = 0; polled[0].revents != 0) {
      ::eventfd_read(wake_event_.get(), &ignored);
    }
    if (polled[1].revents != 0) {
      note_hang_ups();
    }
    for (std::size_t i = 0; i < listeners_.size(); ++i) {
      if ((polled[i + 3].revents & POLLIN) != 0) {
        accept_from(listeners_[i]);
      }
    }
    MHD_run(daemon_);
    release_memory();
  }
}

// What a crowd, its answers or slow pages needed stays in the allocator's free lists, and will not be needed again for
// a long time.
void Server::Implementation::release_memory() {
  constexpr std::size_t kPart = 4;
  const auto now = Clock::now();
  peak_connections_ = std::max(peak_connections_, connections_.size());
  peak_unread_ = std::max(peak_unread_, connections_.unread_bytes());
  const bool fewer = peak_connections_ >= kNotablePeak && connections_.size() <= peak_connections_ / kPart;
  const bool less = peak_unread_ >= kLargeBacklogBytes && connections_.unread_bytes() <= peak_unread_ / kPart;
  if ((fewer && peak_connections_ >= kCrowdedPeak) || now >= release_at_) {
    release_at_ = Clock::time_point::max();
    ::malloc_trim(0);
  }
  if (fewer || less) {  // the rest will follow
    peak_connections_ = connections_.size();
    peak_unread_ = connections_.unread_bytes();
    release_at_ = std::min(release_at_, now + kReleasePause);
  }
}

// Called before anything is closed or accepted, so that each descriptor still stands for the same connection.
void Server::Implementation::note_hang_ups() {
  std::array<epoll_event, 64> events;
  const int count = ::epoll_wait(hang_ups_.get(), events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < count; ++i) {
    connections_.hang_up(events[static_cast<std::size_t>(i)].data.fd, Clock::now() + limits_.answer_time);
  }
}

int Server::Implementation::milliseconds_to_wait(Clock::time_point now, bool accepting) const {
  MHD_UNSIGNED_LONG_LONG daemon_timeout = 0;
  if (MHD_get_timeout(daemon_, &daemon_timeout) == MHD_YES && daemon_timeout == 0) {
    return 0;
  }
  auto wake = std::min(connections_.next_deadline(full()).value_or(Clock::time_point::max()),
                       std::min(listen_again_, release_at_));
  if (!accepting && accept_again_ > now) {
    wake = std::min(wake, accept_again_);
  }
  if (wake == Clock::time_point::max()) {
    return -1;
  }
  const auto wait = std::chrono::ceil<std::chrono::milliseconds>(wake - now).count();
  return static_cast<int>(std::clamp<std::int64_t>(wait, 0, 60'000));
}

void Server::Implementation::accept_from(const Listener& listener) {
  accepting_loopback_ = is_loopback(listener);
  while (!full()) {
    sockaddr_storage address{};
    socklen_t length = sizeof(address);
    const int fd =
        ::accept4(listener.socket.get(), reinterpret_cast<sockaddr*>(&address), &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
      MHD_add_connection(daemon_, fd, reinterpret_cast<const sockaddr*>(&address), length);  // closes it on failure
    } else if (errno != EINTR && errno != ECONNABORTED) {
      if (errno != EAGAIN) {
        ++accept_errors_;
        accept_again_ = Clock::now() + kAcceptPause;
      }
      return;
    }
  }
}

Server::Server(std::unique_ptr<Implementation> implementation) : implementation_(std::move(implementation)) {}
Server::~Server() = default;

util::Result<std::unique_ptr<Server>> Server::start(std::vector<Listener> listeners, Routes routes, Limits limits,
                                                    std::shared_ptr<const Protection> protection) {
  auto implementation =
      std::make_unique<Implementation>(std::move(listeners), std::move(routes), limits, std::move(protection));
  if (auto started = implementation->start(); !started) {
    return tl::unexpected(std::move(started.error()));
  }
  return std::unique_ptr<Server>(new Server(std::move(implementation)));
}

void Server::stop() { implementation_->stop(); }

bool Server::protect(std::shared_ptr<const Protection> protection) {
  return implementation_->protect(std::move(protection));
}

Counters Server::counters() const { return implementation_->counters(); }

std::vector<std::string> Server::taken() const { return implementation_->taken(); }

}  // namespace ssdpulse::http
