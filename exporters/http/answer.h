// SPDX-License-Identifier: Apache-2.0
// How are requests and responses said in libmicrohttpd's terms? For server.cpp alone; bodies are shared, not copied.
#pragma once

#include <microhttpd.h>

#include <string>

#include "exporters/http/page.h"

namespace ssdpulse::http {

Response short_answer(unsigned status, const char* words);

/// Hands the response over, with one more header if given.
MHD_Result queue(MHD_Connection* connection, const Response& response, const char* header = nullptr,
                 const char* value = nullptr);

/// Empty if the client did not send it.
std::string header_of(MHD_Connection* connection, const char* name);

/// A parameter of the URL's query; empty if it is not there.
std::string parameter_of(MHD_Connection* connection, const char* name);

bool has_body(MHD_Connection* connection);

}  // namespace ssdpulse::http
