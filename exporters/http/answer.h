// SPDX-License-Identifier: Apache-2.0
// Requests and responses in libmicrohttpd's terms. Only for the server; bodies are shared, not copied.
#pragma once

#include <microhttpd.h>

#include <string_view>

#include "exporters/http/page.h"
#include "exporters/http/peer_quota.h"
#include "exporters/http/security.h"

namespace ssdpulse::http {

bool has_header(const Headers& headers, const char* name);  // in any case of letters
Response short_answer(unsigned status, const char* words);

/// Queues the response, with these headers in addition to its own.
MHD_Result queue(MHD_Connection* connection, const Response& response, const Headers& headers);

/// Empty if the client did not send it. Borrows from the connection.
std::string_view header_of(MHD_Connection* connection, const char* name);

/// Over a unix socket, or from a loopback address.
bool is_local(const Peer& peer);

/// The page that is requested. At most 16 query parameters, whose total size is bounded by the memory of a connection.
Request request_of(MHD_Connection* connection, std::string_view path);

/// The user ID of the process at the other end; absent unless it is a unix socket.
std::optional<std::uint32_t> unix_user_of(MHD_Connection* connection);
/// A proxy in front may have read it otherwise: no Host, two Host, Content-Length or Authorization fields, a blank in a
/// field's name, a line break in its value, a field that is continued on the next line, or a version other than 1.0
/// and 1.1.
bool is_ambiguous(MHD_Connection* connection, std::string_view version);
bool has_body(MHD_Connection* connection);

}  // namespace ssdpulse::http
