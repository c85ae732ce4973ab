// SPDX-License-Identifier: Apache-2.0
// add_page(): the web server's routes for the page (its files, the runbooks and /api/v1), for own hosts only.
#pragma once

#include <string>
#include <vector>

#include "daemon/web/current_snapshot.h"
#include "exporters/http/page.h"
#include "exporters/page/site.h"

namespace ssdpulse::web {

/// Adds the routes; that of / replaces an earlier one. `hosts`: names, besides localhost and addresses, by which
/// browsers may call this host. The snapshot and the site must outlive the routes.
void add_page(http::Routes& routes, const CurrentSnapshot& current, page::Site& site, std::vector<std::string> hosts);

}  // namespace ssdpulse::web
