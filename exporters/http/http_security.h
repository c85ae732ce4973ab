// SPDX-License-Identifier: Apache-2.0
// Protection: who may read the pages, and over which transport; Security: the plain values that it is made from; Users:
// basic authentication against bcrypt hashes.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/base/result.h"
#include "exporters/http/http_page.h"

namespace ssdpulse::http {

struct Credentials {
  std::string user;
  std::string password;

  Credentials() = default;
  Credentials(Credentials&&) = default;
  Credentials& operator=(Credentials&&) = default;
  Credentials(const Credentials&) = delete;
  Credentials& operator=(const Credentials&) = delete;
  ~Credentials();  // leaves no password behind in freed memory
};

/// From an Authorization header; nothing if not Basic, or malformed.
std::optional<Credentials> parse_basic(std::string_view header);

/// A password that was right is recognised by a keyed hash of it, so that a scrape costs no bcrypt; the password itself
/// is not kept. An unknown user costs as much as a known one: some known user's hash is compared, and the result
/// ignored.
class Users {
 public:
  /// At least one user. `previous`: passwords that it has seen to be right are taken over if name and hash are the
  /// same.
  Users(const std::vector<std::pair<std::string, std::string>>& name_and_hash, const Users* previous);

  /// True if verify() has accepted them before. Takes microseconds; any thread.
  [[nodiscard]] bool remembers(const Credentials& credentials) const;

  /// Takes as long as bcrypt does, milliseconds to a second; any thread.
  [[nodiscard]] bool verify(const Credentials& credentials) const;

 private:
  using Digest = std::array<std::uint8_t, 32>;

  struct User {
    std::string name;
    std::string hash;
    std::optional<Digest> seen;  // of the last password that was right
  };

  /// The user that is meant, or another one for a comparison in vain.
  [[nodiscard]] std::pair<std::size_t, bool> find(const std::string& name) const;
  [[nodiscard]] Digest digest(std::string_view text) const;

  std::shared_ptr<const Digest> key_;  // random, of this process
  mutable std::mutex mutex_;           // protects `seen`
  mutable std::vector<User> users_;
};

struct TlsSettings {
  std::string certificate;  // PEM, followed by the certificates that lead to a known authority
  std::string key;          // PEM
  std::string client_ca;    // PEM; empty: no client certificate can be verified
  bool ask_client = false;
  bool require_client = false;
  bool verify_client = false;                    // any certificate given must be issued by client_ca
  std::vector<std::string> client_allowed_sans;  // DNS name, e-mail, IP address or URI; empty: any
  std::string min_version = "TLS12";             // TLS10 to TLS13
  std::string max_version = "TLS13";
  std::vector<std::string> cipher_suites;      // IANA names, best first; empty: what the library chooses
  std::vector<std::string> curve_preferences;  // CurveP256, CurveP384, CurveP521, X25519; best first
  bool prefer_server_cipher_suites = true;
};

struct Security {
  std::optional<TlsSettings> tls;                          // nothing: plain HTTP
  Headers headers;                                         // added to every answer
  std::vector<std::pair<std::string, std::string>> users;  // name and bcrypt hash; none: everybody
};

class Tls;

/// Never changes: the server replaces it, for connections and requests that begin afterwards.
struct Protection {
  std::shared_ptr<const Tls> tls;             // null: plain HTTP
  bool requires_client_certificates = false;  // that are verified
  Headers headers;
  std::shared_ptr<const Users> users;  // null: everybody
};

/// Parses the certificates; an error names the setting that is wrong. `previous`: passwords that were right need not be
/// hashed again, for users whose hash is still the same.
/// EINVAL: versions, suites or curves are wrong, not a certificate or key. Users are not checked: one whose hash is
/// none can never log in.
util::Result<std::shared_ptr<const Protection>> make_protection(const Security& security,
                                                                const Protection* previous = nullptr);

/// Whether a browser may call this host by this name. A web site can point its own name at 127.0.0.1, and its scripts
/// can then read what is served here (DNS rebinding); they cannot make the browser send any other Host. `host`: a Host
/// header's value. True for IP addresses, for localhost and its subdomains, and for `names`, each with any port; and if
/// empty, as no browser leaves the header out.
bool is_own_host(std::string_view host, const std::vector<std::string>& names);

}  // namespace ssdpulse::http
