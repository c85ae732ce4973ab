// SPDX-License-Identifier: Apache-2.0
// The TLS session of a connection, before its handshake and while it lives. Only for the server. libmicrohttpd makes a
// session and drives it; certificates, versions and the check of the client's certificate are set here, per connection,
// so that new certificates need no new server.
#pragma once

#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>

#include <memory>
#include <string>
#include <vector>

#include "daemon/util/result.h"
#include "exporters/http/handshake.h"
#include "exporters/http/security.h"

namespace ssdpulse::http {

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
