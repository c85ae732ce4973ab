// SPDX-License-Identifier: Apache-2.0
// Where does the daemon answer, and what does it say? For the commands that ask it.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "daemon/client/curl.h"
#include "daemon/config/config.h"
#include "daemon/util/result.h"

namespace ssdpulse::client {

/// What the command line says of it.
struct Where {
  std::string address;  // http://HOST:PORT, https://HOST:PORT, HOST:PORT or unix:PATH; empty: the
                        // configured unix socket if this user may connect to it, else the listen address
  std::string ca_file;  // of certificates that are trusted; empty: the system's
};

/// On this unix socket, and this user may connect to it; also where a daemon is too busy to accept anybody.
bool somebody_listens_on(const std::string& path);

/// The URL that the daemon of this configuration answers at, seen from this host.
std::string url_of(const config::Web& web);

/// Of a query: all but letters, digits and -._~ as %XX.
std::string escaped(std::string_view text);

/// Error::error_number where nobody answered. Else it is the status of HTTP, if there is one.
inline constexpr int kNobodyAnswers = 111;

class Api {
 public:
  static util::Result<Api> open(const Where& where, const config::Web& web);

  /// `path` below /api/v1/. An error says where nobody answered, and what to do.
  util::Result<nlohmann::json> get(const std::string& path);

  /// The page at `path`, as it is: /metrics.
  util::Result<std::string> page(const std::string& path);
  /// Asks for something to be done; `path` as above, with a query.
  util::Result<nlohmann::json> post(const std::string& path);

  [[nodiscard]] const std::string& address() const { return address_; }

  /// Nothing listens there at all. A daemon that is slow, busy or wants a password is there.
  bool nobody_is_there();

 private:
  [[nodiscard]] util::Result<std::string> body_of(const std::string& path, util::Result<Fetched> fetched) const;
  [[nodiscard]] util::Result<nlohmann::json> parsed(const util::Result<std::string>& body) const;

  std::unique_ptr<Fetcher> fetcher_;
  std::string address_;      // for people
  std::string url_;          // without a slash at its end
  std::string unix_socket_;  // empty: none
};

}  // namespace ssdpulse::client
