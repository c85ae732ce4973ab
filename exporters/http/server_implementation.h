// SPDX-License-Identifier: Apache-2.0
// The internals of the server: for server.cpp, which moves connections and bytes, and for server_requests.cpp.
//
// libmicrohttpd runs without threads and listening sockets of its own: the loop polls its epoll descriptor along with
// ours, so that connections, deadlines and counters belong to one thread and need no lock. A request that waits for its
// page or its login is suspended; the thread that did the work resumes it.
#pragma once

#include <microhttpd.h>
#include <sys/eventfd.h>

#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "daemon/util/log.h"
#include "exporters/http/connections.h"
#include "exporters/http/logins.h"
#include "exporters/http/peer_quota.h"
#include "exporters/http/server.h"
#include "exporters/http/users.h"
#include "exporters/http/workers.h"

namespace ssdpulse::http {

// One request that waits for another thread: for its login, or for its page. Made, read and deleted by the loop; in
// between it belongs to the other thread.
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
  // `context`: of the request, see server_requests.cpp. `user`: who logged in; absent: no login is needed.
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
  void hand_back(const Exchange& exchange);
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
  util::UniqueFd
      hang_ups_;  // an epoll of all connections: libmicrohttpd misses some hang-ups, and would keep those as idle
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
  log::Limiter handshake_words_{std::chrono::minutes(1)};
  std::size_t peak_connections_ = 0;                         // since memory was given back
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
