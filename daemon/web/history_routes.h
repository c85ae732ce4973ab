// SPDX-License-Identifier: Apache-2.0
// add_history(): the web server's routes for the past. /api/v1/history: which devices are known, settings that changed,
// marks; /api/v1/history/DEVICE: one device in any window; POST /api/v1/marks: records something that somebody did.
#pragma once

#include <functional>
#include <future>
#include <string>
#include <vector>

#include "daemon/history/reader.h"
#include "exporters/http/page.h"

namespace ssdpulse::web {

/// Stores a mark: History::keep(). Called on any thread.
using KeepMark = std::function<std::future<util::Result<model::WallTime>>(model::Mark)>;

/// Adds the routes. `hosts` as in page_routes.h. The reader must outlive them.
///
/// Marks are the only thing that can be changed from outside. They are accepted from this host (or over a unix socket)
/// and from clients with a user's password, if the request has the header X-Ssdpulse: a page of another site in
/// somebody's browser can send neither that header nor a Host of ours. At most 60 a minute from each user of the unix
/// socket, from each user with a password, and from all others together. Answered with 200 once the mark is on the
/// disk, with 503 and the reason if it is not kept, or not confirmed within 5 seconds.
void add_history(http::Routes& routes, history::Reader& reader, KeepMark keep_mark, std::vector<std::string> hosts);

}  // namespace ssdpulse::web
