// SPDX-License-Identifier: Apache-2.0
// What the server asks of a page, and what it gets. Values only; the server shares the body's bytes and never copies
// them.
#pragma once

#include <functional>
#include <map>
#include <memory>
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
  bool logged_in = false;                                      // with a user's password
  std::multimap<std::string, std::string, std::less<>> query;  // decoded, in the order of the request; at most 16

  /// The first parameter of this name; empty if absent.
  [[nodiscard]] std::string parameter(std::string_view name) const {
    const auto found = query.lower_bound(name);
    return found == query.end() || found->first != name ? "" : found->second;
  }
  [[nodiscard]] std::vector<std::string> parameters(std::string_view name) const {
    std::vector<std::string> all;
    for (auto [one, end] = query.equal_range(name); one != end; ++one) {
      all.push_back(one->second);
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

/// Runs on a worker thread, several at a time. It may take long (others are still answered or refused), but must
/// return: until then it occupies one of Limits::requests, and stop() waits for it.
/// An exception becomes a 500. The handler of a path that begins with /-/ runs on the server's own thread, and must not
/// wait; that of a path that begins with /api/v1/history or /api/v1/day runs on separate threads, as it may take
/// seconds.
using Handler = std::function<Response(const Request&)>;
/// By exact path; a key that ends in /* is for all paths below, if no other key fits. A key that begins with "POST " is
/// for that method, and for an empty body: all data is in the query. All others are for GET and HEAD.
using Routes = std::map<std::string, Handler, std::less<>>;

}  // namespace ssdpulse::http
