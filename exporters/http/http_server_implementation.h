// SPDX-License-Identifier: Apache-2.0
// Server::Implementation: the internals of the server, for http_server.cpp, which moves connections and bytes, and for
// http_requests.cpp. libmicrohttpd runs without threads and listening sockets of its own: the loop polls its epoll
// descriptor along with ours, so that connections, deadlines and counters belong to one thread and need no lock. A
// request that waits for its page or its login is suspended; the thread that did the work resumes it.
#pragma once

#include <microhttpd.h>
#include <sys/eventfd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "daemon/base/log.h"
#include "exporters/http/http_security.h"
#include "exporters/http/http_server.h"
#include "exporters/http/http_tls.h"

namespace ssdpulse::http {

/// Which connections are open, and the deadline of each. libmicrohttpd limits only silence; a client that sends or
/// takes a byte now and then would stay forever. Here every phase of a connection has a deadline; a client that misses
/// it is reset, which also frees what the kernel buffered for it. While others wait for a connection, those that
/// request nothing have less time. Used by one thread only; does not close sockets (their owner does, once it sees the
/// shutdown).
class Connections {
 public:
  using Clock = std::chrono::steady_clock;

  struct Connection {
    int fd;
    Clock::time_point deadline;
    Clock::time_point pressed_deadline;  // while others wait; no later than `deadline`
    bool cut = false;                    // reset at a deadline: it has no further ones
    bool hung_up = false;                // the client sends nothing more: its deadline is not extended
    std::shared_ptr<const void> held;    // what must live as long as the connection
    Handshake handshake = {};
    bool loopback = false;                           // its listener serves this host alone
    std::shared_ptr<const std::string> unread = {};  // the answer that it has not taken completely yet
    Clock::time_point answered_at = {};
  };

  /// The reference stays valid until remove().
  Connection& add(int fd, Clock::time_point deadline, Clock::time_point pressed_deadline);
  void remove(Connection& connection);
  void set_deadline(Connection& connection, Clock::time_point deadline, Clock::time_point pressed_deadline);
  /// The client has closed its side: its requests may still be answered until `deadline`.
  void hang_up(int fd, Clock::time_point deadline);

  /// Resets the connections whose deadline has passed and returns how many. `pressed`: others wait for a connection.
  std::size_t cut_overdue(Clock::time_point now, bool pressed);

  /// The answer that is on its way to the client; null: none.
  void set_unread(Connection& connection, std::shared_ptr<const std::string> body, Clock::time_point now);

  /// Of all such answers, those that many wait for counted once.
  [[nodiscard]] std::size_t unread_bytes() const { return unread_bytes_; }
  [[nodiscard]] std::size_t unread_bytes_with(const std::string& body) const;

  /// Makes room for one more: resets connections that were answered before `before`, the longest ago first, until all
  /// answers take at most `limit`. Returns how many.
  std::size_t cut_unread(const std::string& body, std::size_t limit, Clock::time_point before);

  /// When cut_overdue() must be called next; nothing without connections. May be early, is never late.
  [[nodiscard]] std::optional<Clock::time_point> next_deadline(bool pressed) const;
  [[nodiscard]] std::size_t size() const { return open_.size(); }

 private:
  static void cut(Connection& connection);
  void drop_unread(Connection& connection);

  std::unordered_map<int, std::unique_ptr<Connection>> open_;   // by fd
  std::unordered_map<const std::string*, std::size_t> unread_;  // how many wait for each
  std::size_t unread_bytes_ = 0;
  Clock::time_point earliest_ = Clock::time_point::max();
  Clock::time_point earliest_pressed_ = Clock::time_point::max();
};

/// A few threads and a queue, which render pages while the server's own thread keeps answering. The caller bounds the
/// queue.
class Workers {
 public:
  /// `name`: of the threads, at most 15 letters.
  Workers(unsigned threads, const char* name);
  ~Workers();

  /// Jobs must not throw. Having no memory for a queue entry ends the process.
  void submit(std::function<void()> job) noexcept;

  /// Returns when all jobs submitted before have run. No submit() afterwards.
  void finish();

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  bool finishing_ = false;
  std::vector<std::thread> threads_;
};

/// Hashes passwords on one thread, while known clients are still answered. The caller limits how many wait for it. A
/// wrong password is followed by a pause three times as long as the check, so guessing gets a quarter of one CPU.
class Logins {
 public:
  Logins() : worker_(1, "http-login") {}
  ~Logins();  // checks all that wait first, without pauses

  /// `check` must not throw; it returns whether the password was right.
  void submit(std::function<bool()> check) noexcept;

 private:
  void pause(std::chrono::steady_clock::duration time);

  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stopping_ = false;
  Workers worker_;  // last: it uses the others
};

/// A request that waits for another thread: for its login, or for its page. Made, read and deleted by the loop; in
/// between it belongs to the other thread.
struct Exchange {
  MHD_Connection* connection = nullptr;
  Peer peer;
  // a login
  std::shared_ptr<const Users> users;  // null: this is a page
  Credentials credentials;
  bool password_matches = false;
  // a page
  Lane lane = Lane::page;  // not Lane::instant
  const Handler* handler = nullptr;
  Request request;
  Response response;
};

class Server::Implementation {
 public:
  using Clock = Connections::Clock;
  static constexpr std::chrono::seconds kReleasePause{10};

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
    return {answered_, refused_,       refused_logins_,    refused_unread_, unauthorized_,
            cut_,      accept_errors_, failed_handshakes_, failed_listens_, open_};
  }
  [[nodiscard]] std::vector<std::string> taken() const;

 private:
  static void* on_uri(void* self, const char* uri, MHD_Connection* connection);
  static MHD_Result on_request(void* self, MHD_Connection* connection, const char* url, const char* method,
                               const char* version, const char* upload, size_t* upload_size, void** context);
  static void on_completed(void* self, MHD_Connection* connection, void** context, MHD_RequestTerminationCode code);
  static void on_connection(void* self, MHD_Connection* connection, void** context,
                            MHD_ConnectionNotificationCode code);

  MHD_Result begin(MHD_Connection* connection, std::string_view method, std::string_view path);
  // `context`: of the request, see http_requests.cpp. `user`: who logged in; absent: no login is needed.
  MHD_Result answer(MHD_Connection* connection, std::string_view path, void** context);
  MHD_Result log_in(MHD_Connection* connection, std::shared_ptr<const Users> users, Credentials credentials,
                    void** context);
  MHD_Result serve(MHD_Connection* connection, std::string_view path, std::optional<std::string> user, void** context);
  MHD_Result resume(MHD_Connection* connection, std::string_view path, void** context);
  static Request describe_request(MHD_Connection* connection, std::string_view path, std::optional<std::string> user);
  MHD_Result reply(MHD_Connection* connection, const Response& response, const Headers& more = {});
  bool make_room(const Response& response);
  MHD_Result unauthorized(MHD_Connection* connection);
  bool check_password(Exchange& exchange);
  void make_page(Exchange& exchange);
  void resume_later(const Exchange& exchange);
  void end_exchange(void** context);
  static Connections::Connection* tracked(MHD_Connection* connection);  // null: not known, or gone
  void set_deadline(MHD_Connection* connection, std::chrono::milliseconds time, std::chrono::milliseconds pressed_time);
  [[nodiscard]] std::shared_ptr<const Protection> protection() const;
  [[nodiscard]] bool full() const { return connections_.size() >= limits_.connections; }
  void wake() const { ::eventfd_write(wake_event_.get(), 1); }
  void loop();
  int milliseconds_to_wait(Clock::time_point now, bool accepting) const;
  void accept_from(const Listener& listener);
  void size_buffers(const Listener& listener) const;
  void note_taken();
  void listen_where_taken(Clock::time_point now);
  void note_failed_handshake(MHD_Connection* connection, const Handshake& handshake);
  void note_hang_ups();
  void release_memory();

  std::vector<Listener> listeners_;
  const Routes routes_;
  const Limits limits_;
  mutable std::mutex protection_mutex_;
  std::shared_ptr<const Protection> protection_;  // never null
  MHD_Daemon* daemon_ = nullptr;
  int daemon_fd_ = -1;  // its epoll descriptor
  util::UniqueFd wake_event_;
  // An epoll of all connections: libmicrohttpd misses some hang-ups, and would keep those connections as idle.
  util::UniqueFd hang_ups_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
  struct LaneState {
    explicit LaneState(const LaneLimits& limits) : peer_quota(limits.requests, limits.requests_of_one) {}
    std::unique_ptr<Workers> workers;
    PeerQuota peer_quota;  // whose pages are being made; used only by the loop
  };
  std::array<LaneState, kThreadedLanes> lanes_{LaneState(limits_.lanes[0]), LaneState(limits_.lanes[1]),
                                               LaneState(limits_.lanes[2])};  // by Lane
  LaneState& state_of(Lane lane) { return lanes_.at(static_cast<std::size_t>(lane)); }
  std::unique_ptr<Logins> login_thread_;

  // Used only by the loop.
  Connections connections_;
  PeerQuota logins_{limits_.logins, limits_.logins_of_one};  // waiting or being checked
  Clock::time_point accept_again_{};
  Clock::time_point listen_again_ = Clock::time_point::max();  // where an address is taken
  bool accepting_loopback_ = false;                            // of the listener whose connection is being added
  log::Limiter handshake_reasons_{std::chrono::minutes(1)};
  std::size_t peak_connections_ = 0;                         // since memory was released
  std::size_t peak_unread_ = 0;                              // bytes, likewise
  Clock::time_point release_at_ = Clock::time_point::max();  // after slow pages, and a crowd

  std::atomic<std::uint64_t> answered_{0};
  std::atomic<std::uint64_t> refused_{0};
  std::atomic<std::uint64_t> refused_logins_{0};
  std::atomic<std::uint64_t> refused_unread_{0};
  std::atomic<std::uint64_t> unauthorized_{0};
  std::atomic<std::uint64_t> cut_{0};
  std::atomic<std::uint64_t> accept_errors_{0};
  std::atomic<std::uint64_t> failed_handshakes_{0};
  std::atomic<std::uint64_t> failed_listens_{0};
  std::atomic<std::uint64_t> open_{0};

  mutable std::mutex taken_mutex_;
  std::vector<std::string> taken_;
};

}  // namespace ssdpulse::http
