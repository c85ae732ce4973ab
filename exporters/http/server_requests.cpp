// SPDX-License-Identifier: Apache-2.0
// The path of one request: method and body, login, page; each step may end it.
#include "exporters/http/answer.h"
#include "exporters/http/server_implementation.h"

namespace ssdpulse::http {
namespace {

// What a page of another site must not read or reinterpret is never an answer to it.
constexpr std::pair<const char*, const char*> kEveryAnswer[] = {{"X-Content-Type-Options", "nosniff"},
                                                                {"Cross-Origin-Resource-Policy", "same-origin"}};
const Headers kRetryLater{{MHD_HTTP_HEADER_RETRY_AFTER, "1"}};  // seconds

// What libmicrohttpd keeps for a request whose headers it has passed to us and which has no Exchange.
char headers_seen;
// The same before its headers, if it could be read in two ways: a path that, once decoded, would end before its end,
// or a blank in the request's target.
char uri_is_ambiguous;

const sockaddr* address_of(MHD_Connection* connection) {
  const auto* info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
  return info == nullptr ? nullptr : info->client_addr;
}

Routes::const_iterator route_of(const Routes& routes, std::string_view path) {
  auto route = routes.find(path);
  for (auto end = path.rfind('/'); route == routes.end() && end != std::string_view::npos && end > 0;
       end = path.rfind('/', end - 1)) {
    route = routes.find(std::string(path.substr(0, end)) + "/*");
  }
  return route;
}

}  // namespace

void* Server::Implementation::on_uri(void*, const char* uri, MHD_Connection*) {
  const std::string_view whole(uri);
  const std::string_view path = whole.substr(0, whole.find('?'));
  const bool is_clear = path.find("%00") == std::string_view::npos && whole.find(' ') == std::string_view::npos;
  return is_clear ? nullptr : &uri_is_ambiguous;
}

MHD_Result Server::Implementation::on_request(void* self, MHD_Connection* connection, const char* url,
                                              const char* method, const char* version, const char*, size_t* upload_size,
                                              void** exchange) {
  auto& server = *static_cast<Implementation*>(self);
  try {
    const std::string path = (std::string_view(method) == MHD_HTTP_METHOD_POST ? "POST " : "") + std::string(url);
    if (*exchange == nullptr || *exchange == &uri_is_ambiguous) {
      const bool is_clear = std::exchange(*exchange, &headers_seen) == nullptr && !is_ambiguous(connection, version);
      return is_clear ? server.begin(connection, method, path)
                      : server.reply(connection, short_answer(400, "this request could be read in two ways\n"));
    }
    if (*exchange == &headers_seen) {
      return server.answer(connection, path, exchange);
    }
    *upload_size = 0;
    return server.resume(connection, path, exchange);
  } catch (...) {
    return MHD_NO;
  }
}

// An answer given here is final for the connection too: libmicrohttpd closes it, as a body may still be on its way.
MHD_Result Server::Implementation::begin(MHD_Connection* connection, std::string_view method, std::string_view path) {
  set_deadline(connection, limits_.answer_time, limits_.answer_time);
  const bool posts = method == MHD_HTTP_METHOD_POST && routes_.find(path) != routes_.end();
  if (method != MHD_HTTP_METHOD_GET && method != MHD_HTTP_METHOD_HEAD && !posts) {
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
  auto made = std::make_unique<Exchange>();
  made->peer = limits_.peer_of(address_of(connection));
  if (!logins_.take(made->peer)) {
    ++refused_logins_;
    return reply(connection, short_answer(503, "too many logins at once; try again\n"), kRetryLater);
  }
  made->connection = connection;
  made->users = std::move(users);
  made->credentials = std::move(credentials);
  auto& login = *made;
  MHD_suspend_connection(connection);
  login_thread_->submit([this, &login] { return check(login); });
  *exchange = made.release();
  return MHD_YES;
}

// A client that gets here may read everything.
MHD_Result Server::Implementation::serve(MHD_Connection* connection, std::string_view path, void** exchange) {
  const auto route = route_of(routes_, path);
  if (route == routes_.end()) {
    return reply(connection, short_answer(404, "no such page\n"));
  }
  const Route& of = route->second;
  auto made = std::make_unique<Exchange>();
  made->peer = limits_.peer_of(address_of(connection));
  made->request = request_of(connection, path);
  made->request.local = is_local(peer_of(address_of(connection)));
  const auto* taking = ours(connection);
  made->request.loopback = taking != nullptr && taking->loopback;
  made->request.unix_user = unix_user_of(connection);
  made->request.logged_in = protection()->users != nullptr;
  if (made->request.logged_in) {
    const auto credentials = parse_basic(header_of(connection, MHD_HTTP_HEADER_AUTHORIZATION));
    made->request.user = credentials ? credentials->user : "";
  }
  if (of.lane == Lane::instant) {
    return reply(connection, of.handler(made->request));
  }
  made->lane = static_cast<std::size_t>(of.is_slow && of.is_slow(made->request) ? Lane::slow : of.lane);
  LaneOfServer& lane = lanes_[made->lane];
  if (!lane.peer_quota.take(made->peer)) {
    ++refused_;
    return reply(connection, short_answer(503, "too many requests at once; try again\n"), kRetryLater);
  }
  made->connection = connection;
  made->handler = &of.handler;
  auto& page = *made;
  MHD_suspend_connection(connection);
  lane.workers->submit([this, &page] { make_page(page); });
  *exchange = made.release();
  return MHD_YES;
}

MHD_Result Server::Implementation::resume(MHD_Connection* connection, std::string_view path, void** exchange) {
  auto* done = static_cast<Exchange*>(*exchange);
  if (done->users == nullptr) {
    const auto page = std::move(done->response);
    if (done->lane == static_cast<std::size_t>(Lane::slow)) {
      release_at_ = std::min(release_at_, Clock::now() + kReleasePause);
    }
    forget(exchange);
    return reply(connection, page);
  }
  if (!done->right) {
    return unauthorized(connection);
  }
  forget(exchange);
  return serve(connection, path, exchange);
}

// A body of any size gets through if it is the only one.
bool Server::Implementation::make_room(const Response& response) {
  constexpr std::size_t kShort = 1024;
  if (!response.body || response.body->size() <= kShort) {
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
  for (const auto& [name, value] : kEveryAnswer) {
    if (!has_header(headers, name) && !has_header(response.headers, name)) {
      headers.emplace_back(name, value);
    }
  }
  if (auto* taking = ours(connection)) {
    connections_.set_deadline(*taking, taking->deadline, Clock::now() + limits_.pressed_time);
    connections_.set_unread(*taking, response.body, Clock::now());
    if (taking->held != in_force->tls) {  // its client was judged by certificates that are no longer in force
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

// From here on the exchange belongs to the loop.
void Server::Implementation::hand_back(const Exchange& exchange) {
  MHD_resume_connection(exchange.connection);
  // libmicrohttpd's own signal can be swallowed by a run that looked for resumed connections just before it.
  wake();
}

void Server::Implementation::forget(void** exchange) {
  const std::unique_ptr<Exchange> done(static_cast<Exchange*>(*exchange));
  *exchange = &headers_seen;
  (done->users != nullptr ? logins_ : lanes_[done->lane].peer_quota).leave(done->peer);
}

void Server::Implementation::on_completed(void* self, MHD_Connection* connection, void** exchange,
                                          MHD_RequestTerminationCode code) {
  auto& server = *static_cast<Implementation*>(self);
  if (code == MHD_REQUEST_TERMINATED_COMPLETED_OK) {
    ++server.answered_;
  }
  if (*exchange != nullptr && *exchange != &headers_seen && *exchange != &uri_is_ambiguous) {
    server.forget(exchange);
  }
  *exchange = nullptr;
  if (auto* done = ours(connection)) {
    server.connections_.set_unread(*done, nullptr, {});
  }
  server.set_deadline(connection, server.limits_.idle_time, server.limits_.pressed_time);
}

}  // namespace ssdpulse::http
