// SPDX-License-Identifier: Apache-2.0
// Request and Response: what the server asks of a page, and what it gets. Values only; the server shares the body's
// bytes and never copies them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ssdpulse::http {

using Headers = std::vector<std::pair<std::string, std::string>>;

struct Request {
  std::string path;
  std::string accept;                                          // the header's value, empty if absent
  std::string accept_encoding;                                 // the same
  std::string host;                                            // the same
  std::string if_none_match;                                   // the same
  std::string own;                                             // of X-Ssdpulse, which no page of another site can send
  bool local = false;                                          // from this host, or over a unix socket
  bool loopback = false;                                       // the listener serves this host alone, over TCP
  bool logged_in = false;                                      // with a user's password
  std::string user;                                            // whose; empty if not logged in
  std::optional<std::uint32_t> unix_user;                      // its user ID, over a unix socket
  std::multimap<std::string, std::string, std::less<>> query;  // decoded, in the order of the request; at most 16

  /// The first parameter of this name; empty if absent.
  [[nodiscard]] std::string parameter(std::string_view name) const {
    const auto found = query.lower_bound(name);
    return found == query.end() || found->first != name ? "" : found->second;
  }
  [[nodiscard]] std::vector<std::string> parameters(std::string_view name) const {
    std::vector<std::string> all;
    for (auto [found, end] = query.equal_range(name); found != end; ++found) {
      all.push_back(found->second);
    }
    return all;
  }
};

struct Response {
  unsigned status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string content_encoding;             // empty: none
  Headers headers;                          // additional; if the operator configured the same one, that one wins
  std::shared_ptr<const std::string> body;  // null: empty
};

/// Runs on a worker thread, several at a time, and must return: until then it occupies one of its lane's requests, and
/// stop() waits for it. An exception becomes a 500.
using Handler = std::function<Response(const Request&)>;

/// Which threads answer, and which requests share a bound: none waits for one of another lane.
enum class Lane : std::uint8_t {
  scrape,  // metrics: what Prometheus needs every few seconds
  page,    // from memory: milliseconds
  slow,    // may wait for a disk, or take seconds
  instant  // on the server's own thread, without a bound: must not wait
};
inline constexpr std::size_t kThreadedLanes = 3;

enum class Method : std::uint8_t {
  get,  // and HEAD
  post  // with an empty body: all data is in the query
};

struct Route {
  // NOLINTBEGIN(google-explicit-constructor): a handler alone is a page
  Route() = default;
  template <typename Callable>
  Route(Callable handler_of, Lane usual = Lane::page, std::function<bool(const Request&)> slow = nullptr,
        Method taken = Method::get)
      : handler(std::move(handler_of)), lane(usual), is_slow(std::move(slow)), method(taken) {}
  // NOLINTEND(google-explicit-constructor)

  Handler handler;
  Lane lane = Lane::page;
  std::function<bool(const Request&)> is_slow;  // which of its requests use Lane::slow; empty: none. Must not wait
  Method method = Method::get;                  // all others are answered with 405
};

/// By exact path; a key that ends in /* is for all paths below, if no other key fits.
using Routes = std::map<std::string, Route, std::less<>>;

struct Readiness {
  bool ready = false;
  std::vector<std::string> missing;  // "history: its disk does not answer"
};

/// The pages that every daemon serves: /metrics as given; / (links to the others); /-/healthy (200 while the server
/// answers at all); /-/ready (200 while it is ready, else 503; and what cannot be answered now, a line each).
/// `readiness` is called on the server's own thread, and must not wait.
Routes daemon_pages(Handler metrics, std::function<Readiness()> readiness);

}  // namespace ssdpulse::http
