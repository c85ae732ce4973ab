// SPDX-License-Identifier: Apache-2.0
#include "daemon/web/page_routes.h"

#include <memory>
#include <utility>

#include "daemon/web/own_hosts.h"
#include "exporters/page/assets.h"

namespace ssdpulse::web {
namespace {

using AnswerPtr = std::shared_ptr<const page::Answer>;

page::Question question_of(const http::Request& request) {
  return {request.path, [&request](std::string_view name) { return request.parameter(name); }, request.accept_encoding,
          request.if_none_match};
}

http::Response response_of(const AnswerPtr& answer) {
  http::Response response{answer->status, answer->content_type, answer->content_encoding, page_headers(),
                          std::shared_ptr<const std::string>(answer, &answer->bytes)};
  if (!answer->etag.empty()) {
    response.headers.emplace_back("ETag", answer->etag);
  }
  return response;
}

}  // namespace

void add_page(http::Routes& routes, const CurrentSnapshot& current, page::Site& site, std::vector<std::string> hosts) {
  for (const page::EmbeddedFile& file : page::embedded_files()) {
    routes[std::string(file.path)] = for_own_hosts(
        hosts, [&site](const http::Request& request) { return response_of(site.file(question_of(request))); });
  }
  const auto api = for_own_hosts(std::move(hosts), [&current, &site](const http::Request& request) {
    return response_of(site.api(current.get(), question_of(request)));
  });
  routes["/api/v1/*"] = {api, http::Lane::page};
  // From the history.
  routes["/api/v1/day"] = {api, http::Lane::slow};
  routes["/api/v1/why"] = {api, http::Lane::page,
                           [](const http::Request& request) { return !request.parameter("at").empty(); }};
}

}  // namespace ssdpulse::web
