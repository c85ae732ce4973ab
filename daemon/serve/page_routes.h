// SPDX-License-Identifier: Apache-2.0
// daemon_routes(), add_page() and add_measured(): the web server's routes for what is now: /metrics, the page and its
// API. page_headers() and others: what all answers for browsers share, and the check of the requested host. Handlers
// are called on any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/history/history_reader.h"
#include "daemon/model/metric_groups.h"
#include "daemon/serve/current_snapshot.h"
#include "exporters/http/http_page.h"
#include "exporters/page/page_site.h"
#include "exporters/prometheus/metrics_page.h"

namespace ssdpulse::serve {

/// Only our own files may run, be shown or be requested, and no other page may frame ours.
const http::Headers& page_headers();

/// A line of text with these headers.
http::Response text_response(unsigned status, const std::string& text);

/// Refuses (421) a Host that is neither an address, nor localhost, nor one of these: a page of another site that gave
/// its own name our address would send such a Host (DNS rebinding). GuardedListeners::loopback: what Prometheus may ask
/// for by any name of this host, unless `hosts` lists them; on a loopback listener nobody but programs of this host
/// can, and a browser is one of them.
enum class GuardedListeners : std::uint8_t { all, loopback };
http::Handler for_own_hosts(std::vector<std::string> hosts, http::Handler handler,
                            GuardedListeners guarded = GuardedListeners::all);

/// The routes that are always there: /metrics, and the others of http::daemon_pages(). `shown`: the groups of metrics
/// that are not requested by name; `hosts`: names of this host, see above; `reader`: null without a history. All must
/// outlive the routes.
http::Routes daemon_routes(const CurrentSnapshot& current, exposition::MetricsPage& page, model::MetricGroups shown,
                           std::vector<std::string> hosts, const history::Reader* reader);

/// Adds the routes of the page (its files, the runbooks and /api/v1), for own hosts only; that of / replaces an earlier
/// one. `hosts`: names, besides localhost and addresses, by which browsers may call this host. The snapshot and the
/// site must outlive the routes.
void add_page(http::Routes& routes, const CurrentSnapshot& current, page::Site& site, std::vector<std::string> hosts);

/// Adds the route of `ssdpulse audit`, /api/v1/measured: what its rules weigh of a snapshot. It is there without the
/// page, too, and for whoever may read /metrics, which has the same figures. `hosts` and lifetime as above.
void add_measured(http::Routes& routes, const CurrentSnapshot& current, std::vector<std::string> hosts);

}  // namespace ssdpulse::serve
