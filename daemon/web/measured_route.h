// SPDX-License-Identifier: Apache-2.0
// add_measured(): the web server's route of `ssdpulse audit`, /api/v1/measured: what its rules weigh of a snapshot. It
// is there without the page, too, and for whoever may read /metrics, which has the same figures.
#pragma once

#include <string>
#include <vector>

#include "daemon/web/current_snapshot.h"
#include "exporters/http/page.h"

namespace ssdpulse::web {

/// `hosts` as in page_routes.h. The snapshot must outlive the route.
void add_measured(http::Routes& routes, const CurrentSnapshot& current, std::vector<std::string> hosts);

}  // namespace ssdpulse::web
