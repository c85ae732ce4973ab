// SPDX-License-Identifier: Apache-2.0
// The pages that the daemon serves: their paths, and the three that need no more than a sentence.
#pragma once

#include <functional>

#include "exporters/http/page.h"

namespace ssdpulse::http {

/// /metrics as given; / (links to the others); /-/healthy (200 while the server answers at all);
/// /-/ready (200 while `ready` returns true, else 503). `ready` is called on the server's own thread.
Routes daemon_pages(Handler metrics, std::function<bool()> ready);

}  // namespace ssdpulse::http
