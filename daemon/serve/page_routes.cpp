// SPDX-License-Identifier: Apache-2.0
#include "daemon/serve/page_routes.h"

#include <memory>
#include <utility>

#include "daemon/advice/measured.h"
#include "exporters/http/http_security.h"

namespace ssdpulse::serve {
namespace {

page::Question question_of(const http::Request& request) {
  return {request.path, [&request](std::string_view name) { return request.parameter(name); }, request.accept_encoding,
          request.if_none_match};
}

http::Response response_of(const std::shared_ptr<const page::Answer>& answer) {
  http::Response response{answer->status, answer->content_type, answer->content_encoding, page_headers(),
                          std::shared_ptr<const std::string>(answer, &answer->bytes)};
  if (!answer->etag.empty()) {
    response.headers.emplace_back("ETag", answer->etag);
  }
  return response;
}

}  // namespace

const http::Headers& page_headers() {
  static const auto& headers = *new http::Headers{
      {"Content-Security-Policy",
       "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; "
       "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"},
      {"X-Content-Type-Options", "nosniff"},
      {"Referrer-Policy", "no-referrer"},
      {"Cross-Origin-Resource-Policy", "same-origin"},
      {"Cache-Control", "no-cache"},
      {"Vary", "Accept-Encoding"},
  };
  return headers;
}

http::Response text_response(unsigned status, const std::string& text) {
  return {status, "text/plain; charset=utf-8", "", page_headers(), std::make_shared<const std::string>(text + "\n")};
}

http::Handler for_own_hosts(std::vector<std::string> hosts, http::Handler handler, GuardedListeners guarded) {
  return [hosts = std::move(hosts), handler = std::move(handler),
          guarded](const http::Request& request) -> http::Response {
    const bool guards = guarded == GuardedListeners::all || request.loopback || !hosts.empty();
    if (!guards || http::is_own_host(request.host, hosts)) {
      return handler(request);
    }
    return text_response(421, "this name is not known here: ask by IP address or localhost, or list it in web.hosts");
  };
}

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

void add_measured(http::Routes& routes, const CurrentSnapshot& current, std::vector<std::string> hosts) {
  const auto answer = [&current](const http::Request&) -> http::Response {
    const auto snapshot = current.get();
    if (!snapshot) {
      return text_response(503, "no sample was taken yet");
    }
    return {200, "application/json", "", page_headers(),
            std::make_shared<const std::string>(advice::measured_json(advice::measure(*snapshot)))};
  };
  routes["/api/v1/measured"] = {for_own_hosts(std::move(hosts), answer, GuardedListeners::loopback), http::Lane::page};
}

}  // namespace ssdpulse::serve
