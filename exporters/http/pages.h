// SPDX-License-Identifier: Apache-2.0
// The pages that the daemon serves: their paths, and the three that need no more than a sentence.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "exporters/http/page.h"

namespace ssdpulse::http {

/// /metrics as given; / (links to the others); /-/healthy (200 while the server answers at all);
/// /-/ready (200 while it is ready, else 503; and what cannot be answered now, a line each). `readiness` is called on
/// the server's own thread, and must not wait.
struct Readiness {
  bool ready = false;
  std::vector<std::string> missing;  // "history: its disk does not answer"
};
Routes daemon_pages(Handler metrics, std::function<Readiness()> readiness);

}  // namespace ssdpulse::http
