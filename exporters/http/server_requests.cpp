// SPDX-License-Identifier: Apache-2.0
// The path of one request: method and body, login, page; each step may end it.
#include "exporters/http/answer.h"
#include "exporters/http/server_implementation.h"

namespace ssdpulse::http {
namespace {

// Sent unless the operator or the page sets another value: browsers neither guess another type of content, nor let
// pages of other sites embed an answer.
constexpr std::pair<const char*, const char*> kDefaultHeaders[] = {{"X-Content-Type-Options", "nosniff"},
                                                                   {"Cross-Origin-Resource-Policy", "same-origin"}};
const Headers kRetryLater{{MHD_HTTP_HEADER_RETRY_AFTER, "1"}};  // seconds

// libmicrohttpd keeps one pointer for each request, the `context` of the functions below:
//   before on_request()             null, or &ambiguous_uri if on_uri() found it so
//   from its first call on          &headers_seen
//   while another thread has it     the Exchange
char ambiguous_uri;
char headers_seen;

const sockaddr* address_of(MHD_Connection* connection) {
  const auto* info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
  return info == nullptr ? nullptr : info->client_addr;
}

// The route of the path itself, else of the nearest directory above it that has a route "DIRECTORY/*".
Routes::const_iterator route_of(const Routes& routes, std::string_view path) {
  auto route = routes.find(path);
  for (auto end = path.rfind('/'); route == routes.end() && end != std::string_view::npos && end > 0;
       end = path.rfind('/', end - 1)) {
    route = routes.find(std::string(path.substr(0, end)) + "/*");
  }
  return route;
}

}  // namespace

// Its result is the context of the request. A path with %00 would end there once decoded; a blank ends the URI for some
// programs.
void* Server::Implementation::on_uri(void*, const char* uri, MHD_Connection*) {
  const std::string_view whole(uri);
  const std::string_view path = whole.substr(0, whole.find('?'));
  const bool ambiguous = path.find("%00") != std::string_view::npos || whole.find(' ') != std::string_view::npos;
  return ambiguous ? &ambiguous_uri : nullptr;
}

// libmicrohttpd calls it when the headers have been read, when the rest of the request has (here: at once, as there is
// no body), and when a suspended connection was resumed.
MHD_Result Server::Implementation::on_request(void* self, MHD_Connection* connection, const char* url,
                                              const char* method, const char* version, const char*, size_t* upload_size,
                                              void** context) {
  auto& server = *static_cast<Implementation*>(self);
  try {
    const std::string path = (std::string_view(method) == MHD_HTTP_METHOD_POST ? "POST " : "") + std::string(url);
    if (*context == nullptr || *context == &ambiguous_uri) {
      const bool ambiguous = *context == &ambiguous_uri || is_ambiguous(connection, version);
      *context = &headers_seen;
      return ambiguous
                 ? server.reply(connection, short_answer(400, "ambiguous request: a proxy may read it differently\n"))
                 : server.begin(connection, method, path);
    }
    if (*context == &headers_seen) {
      return server.answer(connection, path, context);
    }
    *upload_size = 0;
    return server.resume(connection, path, context);
  } catch (...) {
    return MHD_NO;
  }
}

// An answer given here is final for the connection too: libmicrohttpd closes it, as a body may still be on its way.
MHD_Result Server::Implementation::begin(MHD_Connection* connection, std::string_view method, std::string_view path) {
  set_deadline(connection, limits_.answer_time, limits_.answer_time);
  const bool has_post_route = method == MHD_HTTP_METHOD_POST && routes_.find(path) != routes_.end();
  if (method != MHD_HTTP_METHOD_GET && method != MHD_HTTP_METHOD_HEAD && !has_post_route) {
    return reply(connection, short_answer(405, "only GET and HEAD\n"), {{MHD_HTTP_HEADER_ALLOW, "GET, HEAD"}});
  }
  if (has_body(connection)) {
    return reply(connection, short_answer(413, "requests must not have a body\n"));
  }
  return MHD_YES;
}

MHD_Result Server::Implementation::answer(MHD_Connection* connection, std::string_view path, void** context) {
  if (auto users = protection()->users) {
    auto credentials = parse_basic(header_of(connection, MHD_HTTP_HEADER_AUTHORIZATION));
    if (!credentials) {
      return unauthorized(connection);
    }
    if (!users->remembers(*credentials)) {
      return log_in(connection, std::move(users), std::move(*credentials), context);
    }
    return serve(connection, path, std::move(credentials->user), context);
  }
  return serve(connection, path, std::nullopt, context);
}

MHD_Result Server::Implementation::log_in(MHD_Connection* connection, std::shared_ptr<const Users> users,
                                          Credentials credentials, void** context) {
  auto exchange = std::make_unique<Exchange>();
  exchange->peer = limits_.peer_of(address_of(connection));
  if (!logins_.take(exchange->peer)) {
    ++refused_logins_;
    return reply(connection, short_answer(503, "too many logins at once; try again\n"), kRetryLater);
  }
  exchange->connection = connection;
  exchange->users = std::move(users);
  exchange->credentials = std::move(credentials);
  MHD_suspend_connection(connection);
  login_thread_->submit([this, login = exchange.get()] { return check_password(*login); });
  *context = exchange.release();
  return MHD_YES;
}

Request Server::Implementation::describe_request(MHD_Connection* connection, std::string_view path,
                                                 std::optional<std::string> user) {
  Request request = request_of(connection, path);
  request.local = is_local(peer_of(address_of(connection)));
  const auto* open = tracked(connection);
  request.loopback = open != nullptr && open->loopback;
  request.unix_user = unix_user_of(connection);
  request.logged_in = user.has_value();
  request.user = std::move(user).value_or("");
  return request;
}

// Only for a client that may read every page.
MHD_Result Server::Implementation::serve(MHD_Connection* connection, std::string_view path,
                                         std::optional<std::string> user, void** context) {
  const auto found = route_of(routes_, path);
  if (found == routes_.end()) {
    return reply(connection, short_answer(404, "no such page\n"));
  }
  const Route& route = found->second;
  Request request = describe_request(connection, path, std::move(user));
  if (route.lane == Lane::instant) {
    return reply(connection, route.handler(request));
  }
  auto exchange = std::make_unique<Exchange>();
  exchange->peer = limits_.peer_of(address_of(connection));
  exchange->lane = route.is_slow && route.is_slow(request) ? Lane::slow : route.lane;
  LaneState& lane = state_of(exchange->lane);
  if (!lane.peer_quota.take(exchange->peer)) {
    ++refused_;
    return reply(connection, short_answer(503, "too many requests at once; try again\n"), kRetryLater);
  }
  exchange->connection = connection;
  exchange->handler = &route.handler;
  exchange->request = std::move(request);
  MHD_suspend_connection(connection);
  lane.workers->submit([this, page = exchange.get()] { make_page(*page); });
  *context = exchange.release();
  return MHD_YES;
}

MHD_Result Server::Implementation::resume(MHD_Connection* connection, std::string_view path, void** context) {
  auto* done = static_cast<Exchange*>(*context);
  if (done->users == nullptr) {
    const auto page = std::move(done->response);
    if (done->lane == Lane::slow) {
      release_at_ = std::min(release_at_, Clock::now() + kReleasePause);
    }
    end_exchange(context);
    return reply(connection, page);
  }
  if (!done->password_matches) {
    return unauthorized(connection);
  }
  std::string user = std::move(done->credentials.user);
  end_exchange(context);
  return serve(connection, path, std::move(user), context);
}

// Whether the answer fits Limits::unread_bytes, if need be once clients that are slow to read theirs have been cut off.
// A body of any size fits if no other is waiting to be read.
bool Server::Implementation::make_room(const Response& response) {
  constexpr std::size_t kAlwaysFitsBytes = 1024;  // the errors, which must get through, and cost next to nothing
  if (!response.body || response.body->size() <= kAlwaysFitsBytes) {
    return true;
  }
  cut_ += connections_.cut_unread(*response.body, limits_.unread_bytes, Clock::now() - limits_.unread_time);
  return connections_.unread_bytes() == 0 || connections_.unread_bytes_with(*response.body) <= limits_.unread_bytes;
}

MHD_Result Server::Implementation::reply(MHD_Connection* connection, const Response& response, const Headers& more) {
  if (!make_room(response)) {
    ++refused_unread_;
    return reply(connection, short_answer(503, "too many answers wait to be read; try again\n"), kRetryLater);
  }
  const auto in_force = protection();
  Headers headers = in_force->headers;
  headers.insert(headers.end(), more.begin(), more.end());
  for (const auto& [name, value] : kDefaultHeaders) {
    if (!has_header(headers, name) && !has_header(response.headers, name)) {
      headers.emplace_back(name, value);
    }
  }
  if (auto* open = tracked(connection)) {
    connections_.set_deadline(*open, open->deadline, Clock::now() + limits_.pressed_time);
    connections_.set_unread(*open, response.body, Clock::now());
    if (open->held != in_force->tls) {  // its client was judged by certificates that are no longer in force
      headers.emplace_back(MHD_HTTP_HEADER_CONNECTION, "close");
    }
  }
  return queue(connection, response, headers);
}

MHD_Result Server::Implementation::unauthorized(MHD_Connection* connection) {
  ++unauthorized_;
  return reply(connection, short_answer(401, "a user and a password are needed\n"),
               {{MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Basic realm=\"ssdpulse\", charset=\"UTF-8\""}});
}

bool Server::Implementation::check_password(Exchange& exchange) {
  bool matches = false;
  if (!stopping_) {
    try {
      matches = exchange.users->verify(exchange.credentials);
    } catch (...) {  // out of memory: not known to match
    }
  }
  exchange.password_matches = matches;
  hand_back(exchange);
  return matches;
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

// From here on the exchange belongs to the loop, which may delete it at any time.
void Server::Implementation::hand_back(const Exchange& exchange) {
  MHD_resume_connection(exchange.connection);
  // libmicrohttpd's own signal is lost if MHD_run() takes it after it has looked for resumed connections.
  wake();
}

// Also gives back the place that it took among the logins or the requests of its lane.
void Server::Implementation::end_exchange(void** context) {
  const std::unique_ptr<Exchange> done(static_cast<Exchange*>(*context));
  *context = &headers_seen;
  (done->users != nullptr ? logins_ : state_of(done->lane).peer_quota).leave(done->peer);
}

void Server::Implementation::on_completed(void* self, MHD_Connection* connection, void** context,
                                          MHD_RequestTerminationCode code) {
  auto& server = *static_cast<Implementation*>(self);
  if (code == MHD_REQUEST_TERMINATED_COMPLETED_OK) {
    ++server.answered_;
  }
  if (*context != nullptr && *context != &headers_seen && *context != &ambiguous_uri) {
    server.end_exchange(context);
  }
  *context = nullptr;
  if (auto* open = tracked(connection)) {
    server.connections_.set_unread(*open, nullptr, {});
  }
  server.set_deadline(connection, server.limits_.idle_time, server.limits_.pressed_time);
}

}  // namespace ssdpulse::http
