// SPDX-License-Identifier: Apache-2.0
// Requests and responses in libmicrohttpd's terms. For server.cpp alone; bodies are shared, not copied.
#pragma once

#include <microhttpd.h>

#include <string_view>

#include "exporters/http/page.h"
#include "exporters/http/places.h"
#include "exporters/http/security.h"

namespace ssdpulse::http {

Response short_answer(unsigned status, const char* words);

/// Hands the response over, with these headers besides its own.
MHD_Result queue(MHD_Connection* connection, const Response& response, const Headers& headers);

/// Empty if the client did not send it. Borrows from the connection.
std::string_view header_of(MHD_Connection* connection, const char* name);

/// Over a unix socket, or from a loopback address.
bool is_local(const Peer& peer);

/// The page that is asked for. At most 16 parameters of the query, in all bounded by the memory of a connection.
Request request_of(MHD_Connection* connection, std::string_view path);

bool has_body(MHD_Connection* connection);

}  // namespace ssdpulse::http
