// SPDX-License-Identifier: Apache-2.0
#include "exporters/http/answer.h"

#include <strings.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <memory>

namespace ssdpulse::http {
namespace {

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
  bool has_control = false;  // a line break in a value, which another program may take for its end
  bool has_blank_name = false;
  bool has_folded = false;
};

MHD_Result note_field(void* to, MHD_ValueKind, const char* name, const char* value) {
  auto& fields = *static_cast<Fields*>(to);
  const std::string_view content(value == nullptr ? "" : value);
  fields.hosts += ::strcasecmp(name, MHD_HTTP_HEADER_HOST) == 0 ? 1 : 0;
  fields.lengths += ::strcasecmp(name, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0 ? 1 : 0;
  fields.credentials += ::strcasecmp(name, MHD_HTTP_HEADER_AUTHORIZATION) == 0 ? 1 : 0;
  fields.has_control = fields.has_control || std::any_of(content.begin(), content.end(), [](char one) {
                         return one != '\t' && static_cast<unsigned char>(one) < ' ';
                       });
  fields.has_blank_name =
      fields.has_blank_name || std::string_view(name).find_first_of(" \t") != std::string_view::npos;
  fields.has_folded = fields.has_folded || is_folded(name, value);
  return MHD_YES;
}

constexpr std::size_t kParameters = 16;

MHD_Result note_parameter(void* query, MHD_ValueKind, const char* name, const char* value) {
  auto& parameters = *static_cast<decltype(Request::query)*>(query);
  parameters.emplace(name, value == nullptr ? "" : value);
  return parameters.size() < kParameters ? MHD_YES : MHD_NO;
}

}  // namespace

bool has_header(const Headers& headers, const char* name) {
  return std::any_of(headers.begin(), headers.end(),
                     [name](const auto& header) { return ::strcasecmp(header.first.c_str(), name) == 0; });
}

Response short_answer(unsigned status, const char* words) {
  Response response;
  response.status = status;
  response.body = std::make_shared<const std::string>(words);
  return response;
}

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

std::string_view header_of(MHD_Connection* connection, const char* name) {
  const char* value = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
  return value == nullptr ? std::string_view() : value;
}

Request request_of(MHD_Connection* connection, std::string_view path) {
  Request request;
  request.path = path;
  request.accept = header_of(connection, MHD_HTTP_HEADER_ACCEPT);
  request.accept_encoding = header_of(connection, MHD_HTTP_HEADER_ACCEPT_ENCODING);
  request.host = header_of(connection, MHD_HTTP_HEADER_HOST);
  request.if_none_match = header_of(connection, MHD_HTTP_HEADER_IF_NONE_MATCH);
  request.own = header_of(connection, "X-Ssdpulse");
  MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, note_parameter, &request.query);
  return request;
}

bool is_local(const Peer& peer) {
  constexpr char kLoopback = 127;
  constexpr std::size_t kVersion4 = 4;
  // An IPv6 peer is identified by its network, and that of ::1 has no other host.
  return peer.size() == kVersion4 ? peer[0] == kLoopback
                                  : std::all_of(peer.begin(), peer.end(), [](char byte) { return byte == 0; });
}

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

}  // namespace ssdpulse::http
