// SPDX-License-Identifier: Apache-2.0
#include <microhttpd.h>
#include <strings.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string_view>

#include "exporters/http/http_page.h"
#include "exporters/http/http_security.h"
#include "exporters/http/http_server.h"
#include "exporters/http/http_server_implementation.h"

namespace ssdpulse::http {
namespace {

// Requests and responses in libmicrohttpd's terms; bodies are shared, not copied.

using ResponsePtr = std::unique_ptr<MHD_Response, decltype(&MHD_destroy_response)>;

void release_body(void* body) { delete static_cast<std::shared_ptr<const std::string>*>(body); }

ResponsePtr to_mhd(const Response& response) {
  MHD_Response* result = nullptr;
  if (response.body && !response.body->empty()) {
    // libmicrohttpd reads the shared bytes in place (and writes none) and drops its share when the last of them is
    // sent.
    auto share = std::make_unique<std::shared_ptr<const std::string>>(response.body);
    result = MHD_create_response_from_buffer_with_free_callback_cls(
        response.body->size(), const_cast<char*>(response.body->data()), release_body, share.get());
    if (result != nullptr) {
      static_cast<void>(share.release());
    }
  } else {
    result = MHD_create_response_from_buffer(0, nullptr, MHD_RESPMEM_PERSISTENT);
  }
  if (result != nullptr) {
    MHD_add_response_header(result, MHD_HTTP_HEADER_CONTENT_TYPE, response.content_type.c_str());
    if (!response.content_encoding.empty()) {
      MHD_add_response_header(result, MHD_HTTP_HEADER_CONTENT_ENCODING, response.content_encoding.c_str());
    }
  }
  return {result, MHD_destroy_response};
}

/// libmicrohttpd before 1.0 accepts a folded field and appends its second line to the name of the field, which it moves
/// for that: the value no longer follows the name. (1.0 refuses such a request with 400.)
bool is_folded(const char* name, const char* value) {
  static const bool joins = *MHD_get_version() == '0';
  if (!joins || value == nullptr) {
    return false;
  }
  const char* after = name + std::strlen(name) + 1;
  while (after < value && (*after == ' ' || *after == '\t')) {
    ++after;
  }
  return after != value;
}

struct Fields {
  std::size_t hosts = 0;
  std::size_t lengths = 0;
  std::size_t credentials = 0;
  bool has_control = false;  // in a value, such as a line break, which another program may take for its end
  bool has_blank_name = false;
  bool has_folded = false;
};

MHD_Result note_field(void* to, MHD_ValueKind, const char* name, const char* value) {
  auto& fields = *static_cast<Fields*>(to);
  const std::string_view content(value == nullptr ? "" : value);
  fields.hosts += ::strcasecmp(name, MHD_HTTP_HEADER_HOST) == 0 ? 1 : 0;
  fields.lengths += ::strcasecmp(name, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0 ? 1 : 0;
  fields.credentials += ::strcasecmp(name, MHD_HTTP_HEADER_AUTHORIZATION) == 0 ? 1 : 0;
  fields.has_control = fields.has_control || std::any_of(content.begin(), content.end(), [](char c) {
                         return c != '\t' && static_cast<unsigned char>(c) < ' ';
                       });
  fields.has_blank_name =
      fields.has_blank_name || std::string_view(name).find_first_of(" \t") != std::string_view::npos;
  fields.has_folded = fields.has_folded || is_folded(name, value);
  return MHD_YES;
}

constexpr std::size_t kMaxParameters = 16;

MHD_Result note_parameter(void* query, MHD_ValueKind, const char* name, const char* value) {
  auto& parameters = *static_cast<decltype(Request::query)*>(query);
  parameters.emplace(name, value == nullptr ? "" : value);
  return parameters.size() < kMaxParameters ? MHD_YES : MHD_NO;
}

/// In any case of letters.
bool has_header(const Headers& headers, const char* name) {
  return std::any_of(headers.begin(), headers.end(),
                     [name](const auto& header) { return ::strcasecmp(header.first.c_str(), name) == 0; });
}

Response short_answer(unsigned status, const char* text) {
  Response response;
  response.status = status;
  response.body = std::make_shared<const std::string>(text);
  return response;
}

/// Queues the response, with these headers, which win over its own of the same name.
MHD_Result queue(MHD_Connection* connection, const Response& response, const Headers& headers) {
  const auto converted = to_mhd(response);
  if (!converted) {
    return MHD_NO;  // out of memory: libmicrohttpd closes the connection
  }
  for (const auto& [name, value] : response.headers) {
    if (!has_header(headers, name.c_str()) &&
        MHD_add_response_header(converted.get(), name.c_str(), value.c_str()) != MHD_YES) {
      return MHD_NO;
    }
  }
  for (const auto& [name, value] : headers) {
    if (MHD_add_response_header(converted.get(), name.c_str(), value.c_str()) != MHD_YES) {
      return MHD_NO;
    }
  }
  return MHD_queue_response(connection, response.status, converted.get());
}

/// Empty if the client did not send it. Borrows from the connection.
std::string_view header_of(MHD_Connection* connection, const char* name) {
  const char* value = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
  return value == nullptr ? std::string_view() : value;
}

/// Over a unix socket, or from a loopback address.
bool is_local(const Peer& peer) {
  constexpr char kLoopback = 127;
  constexpr std::size_t kVersion4 = 4;
  // An IPv6 peer is identified by its network, and that of ::1 has no other host.
  return peer.size() == kVersion4 ? peer[0] == kLoopback
                                  : std::all_of(peer.begin(), peer.end(), [](char byte) { return byte == 0; });
}

/// The user ID of the process at the other end; absent unless it is a unix socket.
std::optional<std::uint32_t> unix_user_of(MHD_Connection* connection) {
  const auto* info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  sockaddr_storage own{};
  socklen_t length = sizeof own;
  if (info == nullptr || ::getsockname(info->connect_fd, reinterpret_cast<sockaddr*>(&own), &length) != 0 ||
      own.ss_family != AF_UNIX) {
    return std::nullopt;
  }
  ucred peer{};
  length = sizeof peer;
  return ::getsockopt(info->connect_fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 ? std::optional(peer.uid)
                                                                                      : std::nullopt;
}

/// A proxy in front may have read it otherwise: no Host, two Host, Content-Length or Authorization fields, a blank in a
/// field's name, a control character other than a tab in its value (a line break), a field that is continued on the
/// next line, or a version other than 1.0 and 1.1.
bool is_ambiguous(MHD_Connection* connection, std::string_view version) {
  Fields fields;
  MHD_get_connection_values(connection, MHD_HEADER_KIND, note_field, &fields);
  return (version != MHD_HTTP_VERSION_1_1 && version != MHD_HTTP_VERSION_1_0) || fields.hosts > 1 ||
         (fields.hosts == 0 && version == MHD_HTTP_VERSION_1_1) || fields.lengths > 1 || fields.credentials > 1 ||
         fields.has_control || fields.has_blank_name || fields.has_folded;
}

bool has_body(MHD_Connection* connection) {
  const auto length = header_of(connection, MHD_HTTP_HEADER_CONTENT_LENGTH);
  return (!length.empty() && length != "0") || !header_of(connection, MHD_HTTP_HEADER_TRANSFER_ENCODING).empty();
}

// The path of one request: method and body, login, page; each step may end it.

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
// programs; and what does not begin with a slash is no path.
void* Server::Implementation::on_uri(void*, const char* uri, MHD_Connection*) {
  const std::string_view whole(uri);
  const std::string_view path = whole.substr(0, whole.find('?'));
  const bool ambiguous =
      !path.starts_with('/') || path.find("%00") != std::string_view::npos || whole.find(' ') != std::string_view::npos;
  return ambiguous ? &ambiguous_uri : nullptr;
}

// libmicrohttpd calls it when the headers have been read, when the rest of the request has (here: at once, as there is
// no body), and when a suspended connection was resumed.
MHD_Result Server::Implementation::on_request(void* self, MHD_Connection* connection, const char* url,
                                              const char* method, const char* version, const char*, size_t* upload_size,
                                              void** context) {
  auto& server = *static_cast<Implementation*>(self);
  try {
    if (*context == nullptr || *context == &ambiguous_uri) {
      const bool ambiguous = *context == &ambiguous_uri || is_ambiguous(connection, version);
      *context = &headers_seen;
      return ambiguous
                 ? server.reply(connection, short_answer(400, "ambiguous request: a proxy may read it differently\n"))
                 : server.begin(connection, method, url);
    }
    if (*context == &headers_seen) {
      return server.answer(connection, url, context);
    }
    *upload_size = 0;
    return server.resume(connection, url, context);
  } catch (...) {
    return MHD_NO;
  }
}

// An answer given here is final for the connection too: libmicrohttpd closes it, as a body may still be on its way.
MHD_Result Server::Implementation::begin(MHD_Connection* connection, std::string_view method, std::string_view path) {
  set_deadline(connection, limits_.answer_time, limits_.answer_time);
  const auto route = route_of(routes_, path);
  if (route != routes_.end() && route->second.method == Method::post) {
    if (method != MHD_HTTP_METHOD_POST) {
      return reply(connection, short_answer(405, "only POST\n"), {{MHD_HTTP_HEADER_ALLOW, MHD_HTTP_METHOD_POST}});
    }
  } else if (method != MHD_HTTP_METHOD_GET && method != MHD_HTTP_METHOD_HEAD) {
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

// With at most kMaxParameters parameters of the query, whose total size is bounded by the memory of a connection.
Request Server::Implementation::describe_request(MHD_Connection* connection, std::string_view path,
                                                 std::optional<std::string> user) {
  Request request;
  request.path = path;
  request.accept = header_of(connection, MHD_HTTP_HEADER_ACCEPT);
  request.accept_encoding = header_of(connection, MHD_HTTP_HEADER_ACCEPT_ENCODING);
  request.host = header_of(connection, MHD_HTTP_HEADER_HOST);
  request.if_none_match = header_of(connection, MHD_HTTP_HEADER_IF_NONE_MATCH);
  request.own = header_of(connection, "X-Ssdpulse");
  MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, note_parameter, &request.query);
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
  resume_later(exchange);
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
  resume_later(exchange);
}

// From here on the exchange belongs to the loop, which may delete it at any time.
void Server::Implementation::resume_later(const Exchange& exchange) {
  MHD_resume_connection(exchange.connection);
  // libmicrohttpd's own signal is lost if MHD_run() takes it after it has looked for resumed connections.
  wake();
}

// Also releases its part of the quota of logins, or of its lane.
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
