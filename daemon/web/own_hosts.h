// SPDX-License-Identifier: Apache-2.0
// The headers that all answers for browsers share, and the check of the requested host.
#pragma once

#include <string>
#include <vector>

#include "exporters/http/page.h"

namespace ssdpulse::web {

/// Only our own files may run, be shown or be requested, and no other page may frame ours.
const http::Headers& page_headers();

/// Refuses (421) a Host that is neither an address, nor localhost, nor one of these: a page of another site that gave
/// its own name our address would send such a Host (DNS rebinding).
http::Handler for_own_hosts(std::vector<std::string> hosts, http::Handler handler);

}  // namespace ssdpulse::web
