// SPDX-License-Identifier: Apache-2.0
// Connections: which are open, and the deadline of each.
// libmicrohttpd limits only silence; a client that sends or takes a byte now and then would stay forever. Here every
// phase of a connection has a deadline; a client that misses it is reset, which also frees what the kernel buffered for
// it. While others wait for a place, connections that hold one without requesting anything have less time. Used by one
// thread only; does not close sockets (their owner does, once it sees the shutdown).
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "exporters/http/handshake.h"

namespace ssdpulse::http {

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

  /// Resets the connections whose deadline has passed and returns how many. `pressed`: others wait for a place.
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

}  // namespace ssdpulse::http
