// SPDX-License-Identifier: Apache-2.0
// Api: a connection to the daemon's web server, for the commands that query it, and functions that find its address.
#pragma once

#include <cerrno>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "daemon/base/result.h"
#include "daemon/config/config.h"

namespace ssdpulse::cli {

// What a server sends is not trusted with the terminal: whoever holds its port could move the cursor, change colours or
// write over what was printed.

/// The first line of an answer, at most 300 bytes, as util::for_json() writes it.
std::string first_line_of(std::string_view body);

/// Makes each string of the answer, and each name of a field, what util::for_json() makes of it.
void clean_strings(nlohmann::json& answer);

/// What the command line specifies.
struct Where {
  std::string address;  // http://HOST:PORT, https://HOST:PORT, HOST:PORT or unix:PATH; empty: the
                        // configured unix socket if this user may connect to it, else the listen address
  std::string ca_file;  // of trusted certificates; empty: the system's
};

/// Somebody listens on this unix socket, and this user may connect to it; true also if a daemon is too busy to accept.
bool somebody_listens_on(const std::string& path);

/// The user ID of who listens there; nothing if nobody can be asked.
std::optional<std::uint32_t> listening_user(const std::string& path);

/// The URL at which a daemon with this configuration answers, seen from this host.
std::string url_of(const config::Web& web);

/// For a path or a query: all but letters, digits and -._~ as %XX.
std::string escaped(std::string_view text);

/// Error::error_number if nobody answered: ECONNREFUSED, which is no HTTP status. Otherwise it is the HTTP status, if
/// there is one. EPERM: a user who cannot be a daemon's listens there.
inline constexpr int kNobodyAnswers = ECONNREFUSED;
inline constexpr int kNotTrusted = EPERM;

/// An answer of a server, which may be anybody's; nothing if it is not JSON, or nested more deeply than any of ours.
std::optional<nlohmann::json> parse_answer(std::string_view body);

struct ServiceUser {
  std::uint32_t user;
  std::uint32_t group;
};
/// Whom the service runs as; absent: there is no such user here.
std::optional<ServiceUser> service_user();

class Fetcher;

/// One connection that is kept between calls, by libcurl, which is loaded when the first Api is opened. Every call
/// waits for its answer: at most ten seconds and 16 MiB. Credentials come from ~/.netrc; TLS is verified; proxies are
/// ignored. Not thread-safe.
class Api {
 public:
  Api(Api&& other) noexcept;
  ~Api();

  /// An error if nothing that answers can be trusted ; an address of the command line is used all the
  /// same, with a warning.
  static util::Result<Api> open(const Where& where, const config::Web& web);

  /// `path` below /api/v1/. An error says which address did not answer, and what to do.
  util::Result<nlohmann::json> get(const std::string& path);

  /// The page at `path`, unchanged: of whom nothing is shown, or who checks it all.
  util::Result<std::string> page(const std::string& path);
  /// Asks for something to be done; `path` as above, with a query.
  util::Result<nlohmann::json> post(const std::string& path);

  [[nodiscard]] const std::string& address() const { return address_; }

  /// Nothing listens there at all. A daemon that is slow, busy or requires a password is there.
  bool nobody_is_there();

 private:
  Api();
  util::Result<std::string> asked(const std::string& path, bool post);
  [[nodiscard]] std::string distrust() const;
  [[nodiscard]] util::Result<nlohmann::json> parsed(const util::Result<std::string>& body) const;

  std::unique_ptr<Fetcher> fetcher_;
  std::string address_;      // for people
  std::string url_;          // without a slash at its end
  std::string unix_socket_;  // empty: none
  bool chosen_ = false;      // the address, by whoever asks: answered by whom it may be
};

}  // namespace ssdpulse::cli
