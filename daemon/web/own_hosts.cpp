// SPDX-License-Identifier: Apache-2.0
#include "daemon/web/own_hosts.h"

#include <memory>
#include <utility>

#include "exporters/http/hosts.h"

namespace ssdpulse::web {

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

http::Handler for_own_hosts(std::vector<std::string> hosts, http::Handler handler, GuardedListeners guarded) {
  return [hosts = std::move(hosts), handler = std::move(handler),
          guarded](const http::Request& request) -> http::Response {
    const bool guards = guarded == GuardedListeners::all || request.loopback || !hosts.empty();
    if (!guards || http::is_own_host(request.host, hosts)) {
      return handler(request);
    }
    return {421, "text/plain; charset=utf-8", "", page_headers(),
            std::make_shared<const std::string>(
                "this name is not known here: ask by IP address or localhost, or list it in web.hosts\n")};
  };
}

}  // namespace ssdpulse::web
