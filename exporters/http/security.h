// SPDX-License-Identifier: Apache-2.0
// Protection: who may read the pages, and over which transport; and the plain values that it is made from. A Protection
// never changes: the server replaces it, for connections and requests that begin afterwards.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/util/result.h"
#include "exporters/http/page.h"

namespace ssdpulse::http {

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
class Users;

struct Protection {
  std::shared_ptr<const Tls> tls;             // null: plain HTTP
  bool requires_client_certificates = false;  // that are verified
  Headers headers;
  std::shared_ptr<const Users> users;  // null: everybody
};

/// Loads the certificates; an error names the setting that is wrong. `previous`: passwords that were right need not be
/// hashed again, for users whose hash is still the same.
/// EINVAL: the settings themselves are wrong, not a certificate, key or user.
util::Result<std::shared_ptr<const Protection>> make_protection(const Security& security,
                                                                const Protection* previous = nullptr);

}  // namespace ssdpulse::http
