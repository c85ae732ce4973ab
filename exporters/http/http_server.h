// SPDX-License-Identifier: Apache-2.0
// Server: serves pages to many clients at once, at a bounded cost, however many and slow they are.
// A small HTTP/1.1 server over libmicrohttpd, plain or TLS: GET and HEAD of fixed paths (POST of a few), no request
// bodies.
//
// One thread moves all bytes, others run the page handlers, those of each lane apart; a slow client holds none. Routes
// of Lane::instant are answered by the first, whatever the others do. Everything is bounded from the start:
//   pages being made          of each lane LaneLimits::requests, and LaneLimits::requests_of_one for one address (all
//                             of 127.0.0.0/8 is one, and so is an IPv6 /64); one more gets 503 with
//                             Retry-After at once. A page that is being sent no longer counts: a client that does not
//                             receive it keeps no page from others
//   logins                    one password is hashed at a time, Limits::logins wait, Limits::logins_of_one of one
//                             address; one more gets 503, too
//   open connections          Limits::connections; more wait in the kernel's backlog and are neither lost nor
//                             refused; while they do, a connection that asks for nothing, or does not take what it
//                             asked for, has Limits::pressed_time
//   memory                    Limits::connection_memory for each connection (TLS needs about as much again), and in the
//                             kernel Limits::send_buffer and Limits::receive_buffer (Linux doubles both): together
//                             200 MiB if all connections fill both; bodies are shared, and those
//                             being sent have Limits::unread_bytes: for one more, whoever has not read its answer
//                             within Limits::unread_time is reset, the oldest first; if that is not enough, it gets 503
//   request line and headers  about half of Limits::connection_memory (8 KiB), else 414 or 431, or a close within a few
//                             bytes of that bound; a request with a body gets 413
//   time                      headers within Limits::request_time of the connection, the next request within
//                             Limits::idle_time, making and sending an answer within Limits::answer_time: all total
//                             times, not silences; a client that closes its side has Limits::answer_time for all its
//                             requests. A client that misses one of these is reset.
#pragma once

#include <sys/socket.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "daemon/base/result.h"
#include "exporters/http/http_listener.h"
#include "exporters/http/http_page.h"
#include "exporters/http/http_security.h"

namespace ssdpulse::http {

/// Whose requests count together: bytes of an address (the first 64 bits for IPv6, because a host chooses the rest
/// itself, and 127.0.0.0/8 as a whole). Clients of unix sockets are one peer.
using Peer = std::string;

Peer peer_of(const sockaddr* address);  // null: as a unix socket

/// The address as people write it, without its port; "a unix socket" for null and other families.
std::string address_text(const sockaddr* address);

/// A bounded number of waiting requests, of which one peer may have only a part, so that no client locks out the
/// others. Used by one thread only.
class PeerQuota {
 public:
  PeerQuota(unsigned all, unsigned of_one) : all_(all), of_one_(of_one) {}

  bool take(const Peer& peer);  // false: none left for this peer
  void leave(const Peer& peer);

 private:
  std::size_t all_;
  std::ptrdiff_t of_one_;
  std::vector<Peer> taken_;
};

struct LaneLimits {
  unsigned workers = 1;  // threads
  unsigned requests = 1;
  unsigned requests_of_one = 1;
};

struct Limits {
  std::array<LaneLimits, kThreadedLanes> lanes{{{2, 96, 64}, {2, 96, 48}, {2, 16, 6}}};  // by Lane
  unsigned logins = 8;  // with the pauses after wrong ones, about two seconds at a usual cost of 10
  unsigned logins_of_one = 2;
  unsigned connections = 1280;  // a thousand clients at one instant, and idle ones
  std::size_t connection_memory = 16 * 1024;
  int send_buffer = 64 * 1024;  // with a round trip of 100 ms still a megabyte a second
  int receive_buffer = 16 * 1024;
  std::size_t unread_bytes = 64U << 20U;       // of answers being sent
  std::chrono::milliseconds unread_time{250};  // a client that takes longer may be cut if others need the memory
  std::chrono::milliseconds request_time{10'000};
  std::chrono::milliseconds idle_time{120'000};  // longer than a usual scrape interval
  std::chrono::milliseconds pressed_time{1'000};
  std::chrono::milliseconds answer_time{10'000};
  std::chrono::milliseconds taken_time{5'000};       // after which an address that somebody else has is tried again
  Peer (*peer_of)(const sockaddr*) = http::peer_of;  // whose requests share the bounds of one address

  /// File descriptors that the server may have open; with fewer, clients wait in the backlog longer.
  [[nodiscard]] std::size_t fds(std::size_t listeners) const { return connections + listeners + 4; }
};

/// Cumulative, except `connections`.
struct Counters {
  std::uint64_t answered = 0;           // answers handed to the kernel completely, whatever their status
  std::uint64_t refused = 0;            // of those, 503 because too many pages were being made
  std::uint64_t refused_logins = 0;     // of those, 503 because too many logins were waiting
  std::uint64_t refused_unread = 0;     // of those, 503 because too many bytes were waiting to be read
  std::uint64_t unauthorized = 0;       // of those, 401
  std::uint64_t cut = 0;                // connections reset at a deadline
  std::uint64_t accept_errors = 0;      // out of file descriptors or memory; retried
  std::uint64_t failed_handshakes = 0;  // connections that ended before their TLS handshake did
  std::uint64_t failed_listens = 0;     // attempts to take over an address that somebody else has
  std::uint64_t connections = 0;        // open now
};

class Server {
 public:
  /// Answers until stop(). Takes over the listeners. Without a Protection: plain HTTP for everybody.
  static util::Result<std::unique_ptr<Server>> start(std::vector<Listener> listeners, Routes routes, Limits limits = {},
                                                     std::shared_ptr<const Protection> protection = nullptr);
  ~Server();  // stops
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Closes the sockets, cuts off answers being sent, waits for running handlers. Prompt if they are prompt.
  /// Idempotent; one thread.
  void stop();

  /// Takes effect for connections and requests that begin afterwards (with TLS, connections that are open end with
  /// their next answer); any thread. False, and nothing changes, if one has TLS and the other does not.
  bool protect(std::shared_ptr<const Protection> protection);

  [[nodiscard]] Counters counters() const;  // any thread

  /// The addresses that are not served, because somebody else listens there; any thread.
  [[nodiscard]] std::vector<std::string> taken() const;

 private:
  class Implementation;
  explicit Server(std::unique_ptr<Implementation> implementation);
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace ssdpulse::http
