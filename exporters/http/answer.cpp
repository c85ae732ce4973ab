// SPDX-License-Identifier: Apache-2.0
#include "exporters/http/answer.h"

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

}  // namespace

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

std::string_view parameter_of(MHD_Connection* connection, const char* name) {
  const char* value = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, name);
  return value == nullptr ? std::string_view() : value;
}

bool has_body(MHD_Connection* connection) {
  const auto length = header_of(connection, MHD_HTTP_HEADER_CONTENT_LENGTH);
  return (!length.empty() && length != "0") || !header_of(connection, MHD_HTTP_HEADER_TRANSFER_ENCODING).empty();
}

}  // namespace ssdpulse::http
