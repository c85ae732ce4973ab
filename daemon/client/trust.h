// SPDX-License-Identifier: Apache-2.0
// Whether a daemon that answers on this host can be trusted: any local user can listen on a port that is free, and
// answer what they like. Only root, the service's user and this user can be a daemon's.
#pragma once

#include <string>

namespace ssdpulse::client {

/// Why not, in words; empty: it can be, or nobody listens there.
std::string distrust_of_socket(const std::string& path);

enum class Checked { of_this_host, of_loopback };

/// `url`: http://HOST:PORT. Judges the addresses of this host, or only those of loopback; any other is not known here.
/// https proves itself.
std::string distrust_of_url(const std::string& url, Checked checked);

}  // namespace ssdpulse::client
