// SPDX-License-Identifier: Apache-2.0
// How does a page get to many clients at once without their number or slowness costing anything?
//
// libmicrohttpd runs without threads and without listening sockets of its own: the loop below polls its epoll
// descriptor beside ours, so that connections, deadlines and counters belong to one thread and need no lock.
// A request whose page is being made is suspended; the worker that made it resumes it.
#include "exporters/http/server.h"

#include <microhttpd.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "exporters/http/answer.h"
#include "exporters/http/connections.h"
#include "exporters/http/logins.h"
#include "exporters/http/tls.h"
#include "exporters/http/users.h"
#include "exporters/http/workers.h"

namespace ssdpulse::http {
namespace {

using Clock = Connections::Clock;

constexpr std::chrono::milliseconds kAcceptPause{100};  // after running out of descriptors
constexpr std::string_view kInstantPages = "/-/";
const Headers kRetryLater{{MHD_HTTP_HEADER_RETRY_AFTER, "1"}};  // seconds

// One request that waits for another thread: for its login, or for its page. Made, read and deleted by the loop; in
// between it is the other thread's.
struct Exchange {
  MHD_Connection* connection = nullptr;
  // a login
  std::shared_ptr<const Users> users;  // null: this is a page
  Credentials credentials;
  bool right = false;
  // a page
  const Handler* handler = nullptr;
  Request request;
  Response response;
};

// What libmicrohttpd holds for a request whose headers it has shown us and which has no Exchange.
char headers_seen;

}  // namespace

class Server::Implementation {
 public:
  Implementation(std::vector<Listener> listeners, Routes routes, Limits limits,
                 std::shared_ptr<const Protection> protection)
      : listeners_(std::move(listeners)),
        routes_(std::move(routes)),
        limits_(limits),
        protection_(protection ? std::move(protection) : std::make_shared<const Protection>()) {}
  ~Implementation() { stop(); }

  util::Result<void> start();
  void stop();
  bool protect(std::shared_ptr<const Protection> protection);
  [[nodiscard]] Counters counters() const {
    return {answered_, refused_, refused_logins_, unauthorized_, cut_, accept_errors_, open_};
  }

 private:
  static MHD_Result on_request(void* self, MHD_Connection* connection, const char* url, const char* method,
                               const char* version, const char* upload, size_t* upload_size, void** exchange);
  static void on_completed(void* self, MHD_Connection* connection, void** exchange, MHD_RequestTerminationCode code);
  static void on_connection(void* self, MHD_Connection* connection, void** context,
                            MHD_ConnectionNotificationCode code);

  MHD_Result begin(MHD_Connection* connection, std::string_view method);
  MHD_Result answer(MHD_Connection* connection, std::string_view path, void** exchange);
  MHD_Result log_in(MHD_Connection* connection, std::shared_ptr<const Users> users, Credentials credentials,
                    void** exchange);
  MHD_Result serve(MHD_Connection* connection, std::string_view path, void** exchange);
  MHD_Result resume(MHD_Connection* connection, std::string_view path, void** exchange);
  MHD_Result reply(MHD_Connection* connection, const Response& response, const Headers& more = {});
  MHD_Result unauthorized(MHD_Connection* connection);
  bool check(Exchange& exchange);
  void make_page(Exchange& exchange);
  void hand_back(const Exchange& exchange);
  void forget(void** exchange);
  void set_deadline(MHD_Connection* connection, std::chrono::milliseconds time, std::chrono::milliseconds pressed_time);
  [[nodiscard]] std::shared_ptr<const Protection> protection() const;
  [[nodiscard]] bool full() const { return connections_.size() >= limits_.connections; }
  void wake() const { ::eventfd_write(wake_event_.get(), 1); }
  void loop();
  int milliseconds_to_wait(Clock::time_point now, bool accepting) const;
  void accept_from(int listener);

  std::vector<Listener> listeners_;
  const Routes routes_;
  const Limits limits_;
  mutable std::mutex protection_mutex_;
  std::shared_ptr<const Protection> protection_;  // never null
  MHD_Daemon* daemon_ = nullptr;
  int daemon_fd_ = -1;  // its epoll descriptor
  util::UniqueFd wake_event_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
  std::unique_ptr<Workers> workers_;
  std::unique_ptr<Logins> login_thread_;

  // The loop's own.
  Connections connections_;
  unsigned requests_ = 0;  // being answered
  unsigned logins_ = 0;    // waiting or being checked
  Clock::time_point accept_again_{};

  std::atomic<std::uint64_t> answered_{0};
  std::atomic<std::uint64_t> refused_{0};
  std::atomic<std::uint64_t> refused_logins_{0};
  std::atomic<std::uint64_t> unauthorized_{0};
  std::atomic<std::uint64_t> cut_{0};
  std::atomic<std::uint64_t> accept_errors_{0};
  std::atomic<std::uint64_t> open_{0};
};

util::Result<void> Server::Implementation::start() {
  wake_event_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_event_.valid()) {
    return util::fail_errno("cannot start the HTTP server: eventfd");
  }
  for (const auto& listener : listeners_) {
    // Accepted sockets inherit it. Best effort: without it the kernel's own limits hold.
    ::setsockopt(listener.socket.get(), SOL_SOCKET, SO_SNDBUF, &limits_.send_buffer, sizeof(limits_.send_buffer));
  }
  constexpr unsigned kFlags = MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME;
  MHD_OptionItem tls_options[] = {{MHD_OPTION_HTTPS_CERT_CALLBACK, 0, reinterpret_cast<void*>(no_certificate())},
                                  {MHD_OPTION_END, 0, nullptr}};
  const bool tls = protection_->tls != nullptr;
  daemon_ = MHD_start_daemon(
      tls ? kFlags | MHD_USE_TLS : kFlags, 0, nullptr, nullptr, &on_request, this, MHD_OPTION_NOTIFY_COMPLETED,
      &on_completed, this, MHD_OPTION_NOTIFY_CONNECTION, &on_connection, this, MHD_OPTION_CONNECTION_LIMIT,
      limits_.connections, MHD_OPTION_CONNECTION_MEMORY_LIMIT, limits_.connection_memory, MHD_OPTION_STRICT_FOR_CLIENT,
      1, MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_ARRAY, tls ? tls_options : tls_options + 1, MHD_OPTION_END);
  const auto* info = daemon_ == nullptr ? nullptr : MHD_get_daemon_info(daemon_, MHD_DAEMON_INFO_EPOLL_FD);
  if (info == nullptr) {
    return util::fail(tls && MHD_is_feature_supported(MHD_FEATURE_HTTPS_CERT_CALLBACK) == MHD_NO
                          ? "cannot start the HTTP server: this libmicrohttpd has no TLS"
                          : "cannot start the HTTP server: out of memory or file descriptors");
  }
  daemon_fd_ = info->epoll_fd;

  // Threads inherit the mask: signals are main's alone, and SIGPIPE must reach nobody.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  workers_ = std::make_unique<Workers>(limits_.workers, "http-page");
  login_thread_ = std::make_unique<Logins>();
  thread_ = std::thread([this] {
    ::pthread_setname_np(::pthread_self(), "http");
    loop();
  });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return {};
}

void Server::Implementation::stop() {
  stopping_ = true;
  if (thread_.joinable()) {
    wake();
    thread_.join();
  }
  // libmicrohttpd aborts if it is stopped with suspended connections: let the workers resume them all first.
  login_thread_.reset();
  workers_.reset();
  if (daemon_ != nullptr) {
    MHD_stop_daemon(std::exchange(daemon_, nullptr));
  }
  listeners_.clear();
}

MHD_Result Server::Implementation::on_request(void* self, MHD_Connection* connection, const char* url,
                                              const char* method, const char*, const char*, size_t* upload_size,
                                              void** exchange) {
  auto& server = *static_cast<Implementation*>(self);
  try {
    if (*exchange == nullptr) {
      *exchange = &headers_seen;
      return server.begin(connection, method);
    }
    if (*exchange == &headers_seen) {
      return server.answer(connection, url, exchange);
    }
    *upload_size = 0;
    return server.resume(connection, url, exchange);
  } catch (...) {
    return MHD_NO;
  }
}

// An answer given here is final for the connection too: libmicrohttpd closes it, as a body may still be under way.
MHD_Result Server::Implementation::begin(MHD_Connection* connection, std::string_view method) {
  set_deadline(connection, limits_.answer_time, limits_.answer_time);
  if (method != MHD_HTTP_METHOD_GET && method != MHD_HTTP_METHOD_HEAD) {
    return reply(connection, short_answer(405, "only GET and HEAD\n"), {{MHD_HTTP_HEADER_ALLOW, "GET, HEAD"}});
  }
  if (has_body(connection)) {
    return reply(connection, short_answer(413, "a request has no body here\n"));
  }
  return MHD_YES;
}

MHD_Result Server::Implementation::answer(MHD_Connection* connection, std::string_view path, void** exchange) {
  if (auto users = protection()->users) {
    auto credentials = parse_basic(header_of(connection, MHD_HTTP_HEADER_AUTHORIZATION));
    if (!credentials) {
      return unauthorized(connection);
    }
    if (!users->remembers(*credentials)) {
      return log_in(connection, std::move(users), std::move(*credentials), exchange);
    }
  }
  return serve(connection, path, exchange);
}

MHD_Result Server::Implementation::log_in(MHD_Connection* connection, std::shared_ptr<const Users> users,
                                          Credentials credentials, void** exchange) {
  if (logins_ >= limits_.logins) {
    ++refused_logins_;
    return reply(connection, short_answer(503, "too many logins at once; try again\n"), kRetryLater);
  }
  auto made = std::make_unique<Exchange>();
  made->connection = connection;
  made->users = std::move(users);
  made->credentials = std::move(credentials);
  auto& login = *made;
  MHD_suspend_connection(connection);
  login_thread_->submit([this, &login] { return check(login); });
  *exchange = made.release();
  ++logins_;
  return MHD_YES;
}

// Who gets here may read everything.
MHD_Result Server::Implementation::serve(MHD_Connection* connection, std::string_view path, void** exchange) {
  const auto route = routes_.find(path);
  if (route == routes_.end()) {
    return reply(connection, short_answer(404, "no such page\n"));
  }
  Request request{std::string(path), std::string(header_of(connection, MHD_HTTP_HEADER_ACCEPT)),
                  std::string(header_of(connection, MHD_HTTP_HEADER_ACCEPT_ENCODING)),
                  std::string(parameter_of(connection, "histograms"))};
  if (path.substr(0, kInstantPages.size()) == kInstantPages) {
    return reply(connection, route->second(request));
  }
  if (requests_ >= limits_.requests) {
    ++refused_;
    return reply(connection, short_answer(503, "too many requests at once; try again\n"), kRetryLater);
  }
  auto made = std::make_unique<Exchange>();
  made->connection = connection;
  made->handler = &route->second;
  made->request = std::move(request);
  auto& page = *made;
  MHD_suspend_connection(connection);
  workers_->submit([this, &page] { make_page(page); });
  *exchange = made.release();
  ++requests_;
  return MHD_YES;
}

MHD_Result Server::Implementation::resume(MHD_Connection* connection, std::string_view path, void** exchange) {
  auto* done = static_cast<Exchange*>(*exchange);
  if (done->users == nullptr) {
    return reply(connection, done->response);
  }
  if (!done->right) {
    return unauthorized(connection);
  }
  forget(exchange);
  return serve(connection, path, exchange);
}

MHD_Result Server::Implementation::reply(MHD_Connection* connection, const Response& response, const Headers& more) {
  Headers headers = protection()->headers;
  headers.insert(headers.end(), more.begin(), more.end());
  return queue(connection, response, headers);
}

MHD_Result Server::Implementation::unauthorized(MHD_Connection* connection) {
  ++unauthorized_;
  return reply(connection, short_answer(401, "a user and a password are needed\n"),
               {{MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Basic realm=\"ssdpulse\", charset=\"UTF-8\""}});
}

bool Server::Implementation::check(Exchange& exchange) {
  bool right = false;
  if (!stopping_) {
    try {
      right = exchange.users->verify(exchange.credentials);
    } catch (...) {  // out of memory: not known to be right
    }
  }
  exchange.right = right;
  hand_back(exchange);
  return right;
}

void Server::Implementation::make_page(Exchange& exchange) {
  if (!stopping_) {
    try {
      exchange.response = (*exchange.handler)(exchange.request);
    } catch (...) {
      exchange.response = short_answer(500, "the page could not be made\n");
    }
  }
  hand_back(exchange);
}

// From here on the exchange is the loop's.
void Server::Implementation::hand_back(const Exchange& exchange) {
  MHD_resume_connection(exchange.connection);
  // libmicrohttpd's own signal can be swallowed by a run that looked for resumed connections just before it.
  wake();
}

void Server::Implementation::forget(void** exchange) {
  const std::unique_ptr<Exchange> done(static_cast<Exchange*>(*exchange));
  *exchange = &headers_seen;
  --(done->users != nullptr ? logins_ : requests_);
}

void Server::Implementation::on_completed(void* self, MHD_Connection* connection, void** exchange,
                                          MHD_RequestTerminationCode code) {
  auto& server = *static_cast<Implementation*>(self);
  if (code == MHD_REQUEST_TERMINATED_COMPLETED_OK) {
    ++server.answered_;
  }
  if (*exchange != nullptr && *exchange != &headers_seen) {
    server.forget(exchange);
  }
  *exchange = nullptr;
  server.set_deadline(connection, server.limits_.idle_time, server.limits_.pressed_time);
}

void Server::Implementation::on_connection(void* self, MHD_Connection* connection, void** context,
                                           MHD_ConnectionNotificationCode code) {
  auto& server = *static_cast<Implementation*>(self);
  if (code == MHD_CONNECTION_NOTIFY_STARTED) {
    const auto* info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    const auto now = Clock::now();
    auto& added =
        server.connections_.add(info->connect_fd, now + server.limits_.request_time, now + server.limits_.pressed_time);
    *context = &added;
    if (const auto tls = server.protection()->tls) {
      const auto* session = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
      tls->prepare(static_cast<gnutls_session_t>(session->tls_session));
      added.held = tls;
    }
  } else {
    server.connections_.remove(*static_cast<Connections::Connection*>(*context));
    *context = nullptr;
  }
  server.open_ = server.connections_.size();
}

void Server::Implementation::set_deadline(MHD_Connection* connection, std::chrono::milliseconds time,
                                          std::chrono::milliseconds pressed_time) {
  const auto* info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
  if (info != nullptr && info->socket_context != nullptr) {
    const auto now = Clock::now();
    connections_.set_deadline(*static_cast<Connections::Connection*>(info->socket_context), now + time,
                              now + pressed_time);
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
    const bool accepting = !full() && now >= accept_again_;
    polled = {{wake_event_.get(), POLLIN, 0}, {daemon_fd_, POLLIN, 0}};
    for (const auto& listener : listeners_) {
      polled.push_back({accepting ? listener.socket.get() : -1, POLLIN, 0});  // poll skips -1
    }
    ::poll(polled.data(), polled.size(), milliseconds_to_wait(now, accepting));
    if (eventfd_t ignored = 0; polled[0].revents != 0) {
      ::eventfd_read(wake_event_.get(), &ignored);
    }
    for (std::size_t i = 2; i < polled.size(); ++i) {
      if ((polled[i].revents & POLLIN) != 0) {
        accept_from(polled[i].fd);
      }
    }
    MHD_run(daemon_);
  }
}

int Server::Implementation::milliseconds_to_wait(Clock::time_point now, bool accepting) const {
  MHD_UNSIGNED_LONG_LONG daemon_timeout = 0;
  if (MHD_get_timeout(daemon_, &daemon_timeout) == MHD_YES && daemon_timeout == 0) {
    return 0;
  }
  auto wake = connections_.next_deadline(full()).value_or(Clock::time_point::max());
  if (!accepting && accept_again_ > now) {
    wake = std::min(wake, accept_again_);
  }
  if (wake == Clock::time_point::max()) {
    return -1;
  }
  const auto wait = std::chrono::ceil<std::chrono::milliseconds>(wake - now).count();
  return static_cast<int>(std::clamp<std::int64_t>(wait, 0, 60'000));
}

void Server::Implementation::accept_from(int listener) {
  while (!full()) {
    sockaddr_storage address{};
    socklen_t length = sizeof(address);
    const int fd = ::accept4(listener, reinterpret_cast<sockaddr*>(&address), &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
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

}  // namespace ssdpulse::http
