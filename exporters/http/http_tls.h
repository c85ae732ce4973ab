// SPDX-License-Identifier: Apache-2.0
// Tls: the TLS session of a connection, before its handshake and while it lives; Handshake: how far the handshake got.
// Only for the server. libmicrohttpd makes a session and drives it; certificates, versions and the check of the
// client's certificate are set here, per connection, so that new certificates need no new server.
#pragma once

#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/base/result.h"
#include "exporters/http/http_security.h"

namespace ssdpulse::http {

class Tls;

/// Written only by the server's thread, during the handshake; lives as long as the connection.
struct Handshake {
  const Tls* tls = nullptr;  // whose certificates were shown; null: the connection has no TLS
  bool began = false;        // the client's first message was understood
  bool refused = false;      // the client's certificate was refused
  bool sent = false;         // our last message was sent
  bool received = false;     // the client's last message was received

  [[nodiscard]] bool failed() const { return tls != nullptr && !(sent && received); }

  /// Why the handshake failed, as far as the server can know.
  [[nodiscard]] std::string_view reason() const {
    if (!began) {
      return "the client said nothing, or spoke no TLS, or no version or cipher of it that is allowed";
    }
    return refused ? "the client's certificate was refused"
                   : "the client gave up, or has no certificate: see its own log; it may not trust ours";
  }
};

/// Versions, cipher suites and curves as a priority string of GnuTLS, which chooses key exchange and cipher separately.
/// An error if a name is unknown, or if the cipher suites that would be offered are not exactly those that are listed.
util::Result<std::string> priorities_of(const TlsSettings& settings);

/// For libmicrohttpd, which needs to know where certificates come from before any session is prepared.
gnutls_certificate_retrieve_function2* no_certificate();

class Tls {
 public:
  static util::Result<std::shared_ptr<const Tls>> make(const TlsSettings& settings);
  ~Tls();
  Tls(const Tls&) = delete;
  Tls& operator=(const Tls&) = delete;

  /// Call it before the handshake. The session borrows from this object and from `handshake` until it ends.
  void prepare(gnutls_session_t session, Handshake& handshake) const;

 private:
  Tls() = default;
  util::Result<void> load(const TlsSettings& settings);
  static int judge_client(gnutls_session_t session);
  [[nodiscard]] bool accepts_client(gnutls_session_t session) const;
  static int note_progress(gnutls_session_t session, unsigned message, unsigned when, unsigned incoming,
                           const gnutls_datum_t* text);
  [[nodiscard]] bool has_allowed_san(gnutls_session_t session) const;

  gnutls_certificate_credentials_t credentials_ = nullptr;
  gnutls_priority_t priorities_ = nullptr;
  gnutls_certificate_request_t request_ = GNUTLS_CERT_IGNORE;
  bool verify_client_ = false;
  std::vector<std::string> allowed_sans_;
};

}  // namespace ssdpulse::http
