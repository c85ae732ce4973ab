// SPDX-License-Identifier: Apache-2.0
// is_own_host(): whether a browser may call this host by this name. A web site can point its own name at 127.0.0.1, and
// its scripts can then read what is served here (DNS rebinding); they cannot make the browser send any other Host.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ssdpulse::http {

/// `host`: a Host header's value. True for IP addresses, for localhost and its subdomains, and for `names`, each with
/// any port; and if empty, as no browser leaves the header out.
bool is_own_host(std::string_view host, const std::vector<std::string>& names);

}  // namespace ssdpulse::http
