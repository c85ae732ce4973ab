// SPDX-License-Identifier: Apache-2.0
// Translates versions, cipher suites and curves for GnuTLS, whose language chooses key exchange and cipher separately.
#pragma once

#include <string>

#include "daemon/util/result.h"
#include "exporters/http/security.h"

namespace ssdpulse::http {

/// A priority string of GnuTLS. An error if a name is unknown, or if the cipher suites that would be offered are not
/// exactly those that are listed.
util::Result<std::string> priorities_of(const TlsSettings& settings);

}  // namespace ssdpulse::http
