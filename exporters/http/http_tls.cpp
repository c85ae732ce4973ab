// SPDX-License-Identifier: Apache-2.0
#include "exporters/http/http_tls.h"

#include <arpa/inet.h>
#include <gnutls/x509.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

namespace ssdpulse::http {
namespace {

// The names are those that exporters written in Go accept.

struct Name {
  std::string_view go;
  std::string_view gnutls;
};

constexpr auto kVersions = std::to_array<Name>(
    {{"TLS10", "VERS-TLS1.0"}, {"TLS11", "VERS-TLS1.1"}, {"TLS12", "VERS-TLS1.2"}, {"TLS13", "VERS-TLS1.3"}});

constexpr auto kCurves = std::to_array<Name>({{"CurveP256", "GROUP-SECP256R1"},
                                              {"CurveP384", "GROUP-SECP384R1"},
                                              {"CurveP521", "GROUP-SECP521R1"},
                                              {"X25519", "GROUP-X25519"}});

struct Suite {
  std::string_view name;
  std::string_view exchange;  // empty: TLS 1.3, where it is not part of the suite
  std::string_view cipher;
  std::string_view mac;
};

constexpr auto kSuites =
    std::to_array<Suite>({{"TLS_AES_128_GCM_SHA256", "", "AES-128-GCM", "AEAD"},
                          {"TLS_AES_256_GCM_SHA384", "", "AES-256-GCM", "AEAD"},
                          {"TLS_CHACHA20_POLY1305_SHA256", "", "CHACHA20-POLY1305", "AEAD"},
                          {"TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA", "ECDHE-ECDSA", "AES-128-CBC", "SHA1"},
                          {"TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA", "ECDHE-ECDSA", "AES-256-CBC", "SHA1"},
                          {"TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "ECDHE-ECDSA", "AES-128-GCM", "AEAD"},
                          {"TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "ECDHE-ECDSA", "AES-256-GCM", "AEAD"},
                          {"TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-ECDSA", "CHACHA20-POLY1305", "AEAD"},
                          {"TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA", "ECDHE-RSA", "AES-128-CBC", "SHA1"},
                          {"TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA", "ECDHE-RSA", "AES-256-CBC", "SHA1"},
                          {"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA", "AES-128-GCM", "AEAD"},
                          {"TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "ECDHE-RSA", "AES-256-GCM", "AEAD"},
                          {"TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA", "CHACHA20-POLY1305", "AEAD"}});

using Keywords = std::vector<std::string_view>;  // of a priority string

void add_once(Keywords& keywords, std::string_view keyword) {
  if (!keyword.empty() && std::find(keywords.begin(), keywords.end(), keyword) == keywords.end()) {
    keywords.push_back(keyword);
  }
}

bool holds(const Keywords& keywords, std::string_view keyword) {
  return std::find(keywords.begin(), keywords.end(), keyword) != keywords.end();
}

/// Allows only these keywords of this kind.
std::string only(std::string_view kind, const Keywords& keywords) {
  std::string text = ":-" + std::string(kind) + "-ALL";
  for (const auto keyword : keywords) {
    text += ":+" + std::string(keyword);
  }
  return text;
}

template <std::size_t N>
util::Result<Keywords> translated(const std::vector<std::string>& names, const std::array<Name, N>& known,
                                  const std::string& setting) {
  Keywords keywords;
  for (const auto& name : names) {
    const auto found = std::find_if(known.begin(), known.end(), [&](const Name& entry) { return entry.go == name; });
    if (found == known.end()) {
      std::string all;
      for (const Name& entry : known) {
        all += (all.empty() ? "" : ", ") + std::string(entry.go);
      }
      return util::fail(setting + ": unknown '" + name + "'; expected one of " + all);
    }
    keywords.push_back(found->gnutls);
  }
  return keywords;
}

util::Result<std::string> suites_of(const std::vector<std::string>& names) {
  if (names.empty()) {
    return std::string();
  }
  Keywords exchanges;
  Keywords ciphers;
  Keywords macs;
  for (const auto& name : names) {
    const auto* suite =
        std::find_if(kSuites.begin(), kSuites.end(), [&](const Suite& known) { return known.name == name; });
    if (suite == kSuites.end()) {
      return util::fail("cipher_suites: unknown '" + name + "'; expected a name such as " +
                        std::string(kSuites.back().name));
    }
    add_once(exchanges, suite->exchange);
    add_once(ciphers, suite->cipher);
    add_once(macs, suite->mac);
  }
  for (const auto& suite : kSuites) {
    const bool listed = std::find(names.begin(), names.end(), suite.name) != names.end();
    const bool offered = !suite.exchange.empty() && holds(exchanges, suite.exchange) && holds(ciphers, suite.cipher) &&
                         holds(macs, suite.mac);
    if (offered && !listed) {
      return util::fail("cipher_suites: with those listed, " + std::string(suite.name) +
                        " would be offered too, as key exchange and cipher are chosen apart; expected it in the list");
    }
  }
  return only("KX", exchanges) + only("CIPHER", ciphers) + only("MAC", macs);
}

// What a client may send in one handshake message, such as its certificates: GnuTLS would hold 128 KiB for
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

util::Result<std::string> priorities_of(const TlsSettings& settings) {
  const auto is_named = [](const std::string& wanted) {
    return [&wanted](const Name& version) { return version.go == wanted; };
  };
  const auto lowest = std::find_if(kVersions.begin(), kVersions.end(), is_named(settings.min_version));
  const auto highest = std::find_if(kVersions.begin(), kVersions.end(), is_named(settings.max_version));
  if (lowest == kVersions.end() || highest == kVersions.end() || lowest > highest) {
    return util::fail("min_version and max_version: expected TLS10, TLS11, TLS12 or TLS13, the lower one first");
  }
  Keywords versions;
  for (auto version = highest + 1; version != lowest;) {
    versions.push_back((--version)->gnutls);
  }
  const auto curves = translated(settings.curve_preferences, kCurves, "curve_preferences");
  if (!curves) {
    return tl::unexpected(curves.error());
  }
  auto suites = suites_of(settings.cipher_suites);
  if (!suites) {
    return suites;
  }
  return "NORMAL" + only("VERS", versions) + *suites + (curves->empty() ? "" : only("GROUP", *curves)) +
         (settings.prefer_server_cipher_suites ? ":%SERVER_PRECEDENCE" : "");
}

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
