// SPDX-License-Identifier: Apache-2.0
// On which sockets are the pages served: those that the configuration names, or those that systemd has opened for us?
#pragma once

#include <vector>

#include "daemon/config/config.h"
#include "daemon/util/result.h"
#include "exporters/http/listener.h"

namespace ssdpulse::web {

/// From systemd: the sockets of the name "web" (FileDescriptorName=web), of which there must be one at least.
util::Result<std::vector<http::Listener>> open_web_listeners(const config::Web& web);

}  // namespace ssdpulse::web
