// SPDX-License-Identifier: Apache-2.0
// The names are those that exporters written in Go accept.
#include "exporters/http/tls_priorities.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace ssdpulse::http {
namespace {

struct Name {
  std::string_view ours;
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

using Words = std::vector<std::string_view>;

void add_once(Words& words, std::string_view word) {
  if (!word.empty() && std::find(words.begin(), words.end(), word) == words.end()) {
    words.push_back(word);
  }
}

bool holds(const Words& words, std::string_view word) {
  return word.empty() || std::find(words.begin(), words.end(), word) != words.end();
}

/// Allows only these words of this kind.
std::string only(std::string_view kind, const Words& words) {
  std::string text = ":-" + std::string(kind) + "-ALL";
  for (const auto word : words) {
    text += ":+" + std::string(word);
  }
  return text;
}

template <std::size_t N>
util::Result<Words> translated(const std::vector<std::string>& names, const std::array<Name, N>& known,
                               const std::string& setting) {
  Words words;
  for (const auto& name : names) {
    const auto found = std::find_if(known.begin(), known.end(), [&](const Name& one) { return one.ours == name; });
    if (found == known.end()) {
      std::string all;
      for (const auto& one : known) {
        all += (all.empty() ? "" : ", ") + std::string(one.ours);
      }
      return util::fail(setting + ": unknown '" + name + "'; expected one of " + all);
    }
    words.push_back(found->gnutls);
  }
  return words;
}

util::Result<std::string> suites_of(const std::vector<std::string>& names) {
  Words exchanges;
  Words ciphers;
  Words macs;
  for (const auto& name : names) {
    const auto* suite =
        std::find_if(kSuites.begin(), kSuites.end(), [&](const Suite& one) { return one.name == name; });
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
  if (names.empty()) {
    return std::string();
  }
  return only("KX", exchanges) + only("CIPHER", ciphers) + only("MAC", macs);
}

}  // namespace

util::Result<std::string> priorities_of(const TlsSettings& settings) {
  const auto is_named = [](const std::string& wanted) {
    return [&wanted](const Name& one) { return one.ours == wanted; };
  };
  const auto least = std::find_if(kVersions.begin(), kVersions.end(), is_named(settings.min_version));
  const auto most = std::find_if(kVersions.begin(), kVersions.end(), is_named(settings.max_version));
  if (least == kVersions.end() || most == kVersions.end() || least > most) {
    return util::fail("min_version and max_version: expected TLS10, TLS11, TLS12 or TLS13, the lower one first");
  }
  Words versions;
  for (auto version = most + 1; version != least;) {
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

}  // namespace ssdpulse::http
