// SPDX-License-Identifier: Apache-2.0
// The sockets on which pages are served: those of the configuration, or those that systemd passed to us.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "daemon/config/config.h"
#include "daemon/util/result.h"
#include "exporters/http/listener.h"

namespace ssdpulse::web {

/// From systemd: the sockets named "web" (FileDescriptorName=web), of which there must be at least one. An address that
/// somebody else has is left for later (Listener::taken), which is logged: whoever binds it first must not keep us from
/// measuring. It is an error if that is another daemon of ours: one that serves there, or keeps the history in
/// `history_directory` ("": none).
util::Result<std::vector<http::Listener>> open_web_listeners(const config::Web& web,
                                                             const std::string& history_directory);

/// The unix socket of the configuration; nothing if it has none.
util::Result<std::optional<http::Listener>> open_web_socket(const config::Web& web);

}  // namespace ssdpulse::web
