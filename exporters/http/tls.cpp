// SPDX-License-Identifier: Apache-2.0
#include "exporters/http/tls.h"

#include <arpa/inet.h>
#include <gnutls/x509.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "exporters/http/tls_priorities.h"

namespace ssdpulse::http {
namespace {

// The most that a client may send in one handshake message, such as its certificates: GnuTLS would hold 128 KiB for
// each of many clients.
constexpr std::size_t kMaxHandshakeBytes = std::size_t{24} * 1024;

gnutls_datum_t datum(const std::string& text) {
  return {reinterpret_cast<unsigned char*>(const_cast<char*>(text.data())), static_cast<unsigned>(text.size())};
}

tl::unexpected<util::Error> refuse(const std::string& what, int code) {
  return util::fail(what + ": " + gnutls_strerror(code));
}

/// A subject alternative name as a text; empty for kinds that cannot be listed.
std::string text_of_san(int kind, const std::array<char, 1024>& bytes, std::size_t size) {
  switch (kind) {
    case GNUTLS_SAN_DNSNAME:
    case GNUTLS_SAN_RFC822NAME:
    case GNUTLS_SAN_URI:
      return {bytes.data(), size};
    case GNUTLS_SAN_IPADDRESS: {
      std::array<char, INET6_ADDRSTRLEN> text{};
      const int family = size == sizeof(in_addr) ? AF_INET : size == sizeof(in6_addr) ? AF_INET6 : AF_UNSPEC;
      return ::inet_ntop(family, bytes.data(), text.data(), text.size()) == nullptr ? "" : text.data();
    }
    default:
      return {};
  }
}

int find_no_certificate(gnutls_session_t, const gnutls_datum_t*, int, const gnutls_pk_algorithm_t*, int,
                        gnutls_pcert_st**, unsigned*, gnutls_privkey_t*) {
  return -1;
}

}  // namespace

gnutls_certificate_retrieve_function2* no_certificate() { return &find_no_certificate; }

Tls::~Tls() {
  if (priorities_ != nullptr) {
    gnutls_priority_deinit(priorities_);
  }
  if (credentials_ != nullptr) {
    gnutls_certificate_free_credentials(credentials_);
  }
}

util::Result<std::shared_ptr<const Tls>> Tls::make(const TlsSettings& settings) {
  std::shared_ptr<Tls> tls(new Tls);
  if (auto loaded = tls->load(settings); !loaded) {
    return tl::unexpected(std::move(loaded.error()));
  }
  return tls;
}

util::Result<void> Tls::load(const TlsSettings& settings) {
  const auto priorities = priorities_of(settings);
  if (!priorities) {
    return util::fail(priorities.error().message, EINVAL);
  }
  if (const int code = gnutls_priority_init(&priorities_, priorities->c_str(), nullptr); code < 0) {
    return util::fail("min_version, max_version, cipher_suites or curve_preferences leave no usable protocol: " +
                          std::string(gnutls_strerror(code)),
                      EINVAL);
  }
  if (const int code = gnutls_certificate_allocate_credentials(&credentials_); code < 0) {
    return refuse("no TLS", code);
  }
  const auto certificate = datum(settings.certificate);
  const auto key = datum(settings.key);
  // If the two do not belong together, GnuTLS reports it.
  if (const int code = gnutls_certificate_set_x509_key_mem(credentials_, &certificate, &key, GNUTLS_X509_FMT_PEM);
      code < 0) {
    return refuse("cert_file and key_file hold no certificate with its key in PEM format", code);
  }
  if (!settings.client_ca.empty()) {
    const auto authority = datum(settings.client_ca);
    const int found = gnutls_certificate_set_x509_trust_mem(credentials_, &authority, GNUTLS_X509_FMT_PEM);
    if (found <= 0) {
      return refuse("client_ca_file holds no certificate in PEM format",
                    found < 0 ? found : GNUTLS_E_NO_CERTIFICATE_FOUND);
    }
  }
  request_ = settings.require_client ? GNUTLS_CERT_REQUIRE
             : settings.ask_client   ? GNUTLS_CERT_REQUEST
                                     : GNUTLS_CERT_IGNORE;
  verify_client_ = settings.verify_client;
  allowed_sans_ = settings.client_allowed_sans;
  return {};
}

void Tls::prepare(gnutls_session_t session, Handshake& handshake) const {
  handshake.tls = this;
  gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, credentials_);
  gnutls_priority_set(session, priorities_);
  gnutls_certificate_server_set_request(session, request_);
  gnutls_handshake_set_max_packet_length(session, kMaxHandshakeBytes);
  // libmicrohttpd uses the session's own pointer itself.
  gnutls_db_set_ptr(session, &handshake);
  gnutls_handshake_set_hook_function(session, GNUTLS_HANDSHAKE_ANY, GNUTLS_HOOK_POST, &Tls::note_progress);
  if (verify_client_) {
    gnutls_session_set_verify_function(session, &Tls::judge_client);
  }
}

int Tls::note_progress(gnutls_session_t session, unsigned message, unsigned, unsigned incoming, const gnutls_datum_t*) {
  auto& handshake = *static_cast<Handshake*>(gnutls_db_get_ptr(session));
  handshake.began = true;
  if (message == GNUTLS_HANDSHAKE_FINISHED) {
    (incoming != 0 ? handshake.received : handshake.sent) = true;
  }
  return 0;
}

// Called for every certificate that a client gives; a client that must give one and does not never gets this far.
int Tls::judge_client(gnutls_session_t session) {
  auto& handshake = *static_cast<Handshake*>(gnutls_db_get_ptr(session));
  handshake.refused = !handshake.tls->accepts_client(session);
  return handshake.refused ? GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR : 0;
}

bool Tls::accepts_client(gnutls_session_t session) const {
  gnutls_typed_vdata_st purpose{};
  purpose.type = GNUTLS_DT_KEY_PURPOSE_OID;
  purpose.data = reinterpret_cast<unsigned char*>(const_cast<char*>(GNUTLS_KP_TLS_WWW_CLIENT));
  unsigned status = 0;
  return gnutls_certificate_verify_peers(session, &purpose, 1, &status) >= 0 && status == 0 &&
         (allowed_sans_.empty() || has_allowed_san(session));
}

bool Tls::has_allowed_san(gnutls_session_t session) const {
  unsigned count = 0;
  const auto* chain = gnutls_certificate_get_peers(session, &count);
  gnutls_x509_crt_t raw = nullptr;
  if (chain == nullptr || count == 0 || gnutls_x509_crt_init(&raw) < 0) {
    return false;
  }
  const std::unique_ptr<std::remove_pointer_t<gnutls_x509_crt_t>, decltype(&gnutls_x509_crt_deinit)> certificate(
      raw, gnutls_x509_crt_deinit);
  if (gnutls_x509_crt_import(raw, chain, GNUTLS_X509_FMT_DER) < 0) {
    return false;
  }
  for (unsigned i = 0;; ++i) {
    std::array<char, 1024> bytes{};
    std::size_t size = bytes.size();
    const int kind = gnutls_x509_crt_get_subject_alt_name(raw, i, bytes.data(), &size, nullptr);
    if (kind == GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE) {
      return false;  // past the last one
    }
    const auto text = kind < 0 ? std::string() : text_of_san(kind, bytes, size);
    if (!text.empty() && std::find(allowed_sans_.begin(), allowed_sans_.end(), text) != allowed_sans_.end()) {
      return true;
    }
    if (kind < 0 && kind != GNUTLS_E_SHORT_MEMORY_BUFFER) {
      return false;
    }
  }
}

}  // namespace ssdpulse::http
