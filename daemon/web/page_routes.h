// SPDX-License-Identifier: Apache-2.0
// Where does the web server serve the page for people, and who may read it? Its files, the runbooks and /api/v1.
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
