// SPDX-License-Identifier: Apache-2.0
// The headers that all answers for browsers share, and the check of the requested host.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "exporters/http/page.h"

namespace ssdpulse::web {

/// Only our own files may run, be shown or be requested, and no other page may frame ours.
const http::Headers& page_headers();

/// Refuses (421) a Host that is neither an address, nor localhost, nor one of these: a page of another site that gave
/// its own name our address would send such a Host (DNS rebinding).
/// GuardedListeners::loopback: what Prometheus may ask for by any name of this host, unless `hosts` lists them; on a
/// loopback listener nobody but programs of this host can, and a browser is one of them.
enum class GuardedListeners : std::uint8_t { all, loopback };
http::Handler for_own_hosts(std::vector<std::string> hosts, http::Handler handler,
                            GuardedListeners guarded = GuardedListeners::all);

}  // namespace ssdpulse::web
