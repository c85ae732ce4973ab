// SPDX-License-Identifier: Apache-2.0
// By which names may a browser call this host? A web site can point a name of its own at 127.0.0.1, and its scripts
// then read what is served here (DNS rebinding); they cannot make the browser send another Host header than that name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ssdpulse::http {

/// `host`: a Host header's value. True for IP addresses, for localhost and what lies below it, and for `names`, each
/// with any port; and for none at all, as no browser leaves it out.
bool is_own_host(std::string_view host, const std::vector<std::string>& names);

}  // namespace ssdpulse::http
