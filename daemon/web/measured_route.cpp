// SPDX-License-Identifier: Apache-2.0
#include "daemon/web/measured_route.h"

#include <memory>
#include <utility>

#include "daemon/audit/measured_json.h"
#include "daemon/web/own_hosts.h"

namespace ssdpulse::web {

void add_measured(http::Routes& routes, const CurrentSnapshot& current, std::vector<std::string> hosts) {
  const auto answer = [&current](const http::Request&) -> http::Response {
    const auto snapshot = current.get();
    if (!snapshot) {
      return {503, "text/plain; charset=utf-8", "", page_headers(),
              std::make_shared<const std::string>("no sample was taken yet\n")};
    }
    return {200, "application/json", "", page_headers(),
            std::make_shared<const std::string>(audit::measured_json(audit::measure(*snapshot)))};
  };
  routes["/api/v1/measured"] = {for_own_hosts(std::move(hosts), answer, GuardedListeners::loopback), http::Lane::page};
}

}  // namespace ssdpulse::web
