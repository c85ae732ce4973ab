// SPDX-License-Identifier: Apache-2.0
// The sockets on which pages are served: those of the configuration, or those that systemd passed to us.
#pragma once

#include <optional>
#include <vector>

#include "daemon/config/config.h"
#include "daemon/util/result.h"
#include "exporters/http/listener.h"

namespace ssdpulse::web {

/// From systemd: the sockets named "web" (FileDescriptorName=web), of which there must be at least one.
util::Result<std::vector<http::Listener>> open_web_listeners(const config::Web& web);

/// The unix socket of the configuration; nothing if it has none.
util::Result<std::optional<http::Listener>> open_web_socket(const config::Web& web);

}  // namespace ssdpulse::web
