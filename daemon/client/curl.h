// SPDX-License-Identifier: Apache-2.0
// Fetcher: fetches pages with libcurl, which is loaded when the first Fetcher is opened.
#pragma once

#include <memory>
#include <string>

#include "daemon/util/result.h"

namespace ssdpulse::client {

struct Fetched {
  long status = 0;  // of HTTP
  std::string body;
};

/// One connection that is kept between pages. Not thread-safe. Credentials come from ~/.netrc; TLS is verified; proxies
/// are ignored.
class Fetcher {
 public:
  /// `ca_file`: of trusted certificates; empty: the system's.
  static util::Result<std::unique_ptr<Fetcher>> open(const std::string& ca_file);
  virtual ~Fetcher() = default;

  /// `unix_socket`: connect there, whatever the URL's host; empty: to the host. At most ten seconds and 16 MiB.
  /// Error::error_number: EPROTO if somebody answered, but not with trusted TLS; ECONNREFUSED if no connection could be
  /// made; else 0, as when the answer took too long.
  virtual util::Result<Fetched> get(const std::string& url, const std::string& unix_socket) = 0;

  /// Asks for something to be done; without a body, and with the header X-Ssdpulse.
  virtual util::Result<Fetched> post(const std::string& url, const std::string& unix_socket) = 0;
};

}  // namespace ssdpulse::client
