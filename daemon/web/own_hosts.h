// SPDX-License-Identifier: Apache-2.0
// What all answers for browsers share: their headers, and whose questions they are.
#pragma once

#include <string>
#include <vector>

#include "exporters/http/page.h"

namespace ssdpulse::web {

/// Nothing but our own files may run, be shown or be asked, and nobody may frame the page.
const http::Headers& page_headers();

/// Refuses a Host that is neither an address, nor localhost, nor one of these: a page of another site that gave its own
/// name our address would have one (DNS rebinding).
http::Handler for_own_hosts(std::vector<std::string> hosts, http::Handler handler);

}  // namespace ssdpulse::web
