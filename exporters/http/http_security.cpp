// SPDX-License-Identifier: Apache-2.0
#include "exporters/http/http_security.h"

#include <arpa/inet.h>
#include <crypt.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <string.h>
#include <strings.h>

#include <algorithm>

#include "exporters/http/http_tls.h"

namespace ssdpulse::http {
namespace {

// A string that was moved from, or was longer before, still holds what it no longer shows.
void wipe(std::string& text) {
  text.resize(text.capacity());
  ::explicit_bzero(text.data(), text.size());
}

bool equal(std::string_view a, std::string_view b) {
  return a.size() == b.size() && gnutls_memcmp(a.data(), b.data(), a.size()) == 0;
}

bool is_address(const std::string& text, int family) {
  in6_addr address{};
  return ::inet_pton(family, text.c_str(), &address) == 1;
}

bool is_port(std::string_view text) {
  return text.size() <= 5 && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool is_same_name(std::string_view a, std::string_view b) {
  return a.size() == b.size() && ::strncasecmp(a.data(), b.data(), a.size()) == 0;
}

bool is_localhost(std::string_view name) {
  constexpr std::string_view kBelow = ".localhost";  // RFC 6761, 6.3
  return is_same_name(name, "localhost") ||
         (name.size() > kBelow.size() && is_same_name(name.substr(name.size() - kBelow.size()), kBelow));
}

}  // namespace

Credentials::~Credentials() { wipe(password); }

std::optional<Credentials> parse_basic(std::string_view header) {
  constexpr std::string_view kScheme = "Basic ";
  if (header.size() <= kScheme.size() || ::strncasecmp(header.data(), kScheme.data(), kScheme.size()) != 0) {
    return std::nullopt;
  }
  header.remove_prefix(kScheme.size());
  const gnutls_datum_t encoded{reinterpret_cast<unsigned char*>(const_cast<char*>(header.data())),
                               static_cast<unsigned>(header.size())};
  gnutls_datum_t decoded{};
  if (gnutls_base64_decode2(&encoded, &decoded) < 0) {
    return std::nullopt;
  }
  const std::string_view text(reinterpret_cast<const char*>(decoded.data), decoded.size);
  std::optional<Credentials> credentials;
  // bcrypt ends at a NUL: what follows one would not count.
  if (const auto colon = text.find(':'); colon != std::string_view::npos && text.find('\0') == std::string_view::npos) {
    credentials.emplace();
    credentials->user = text.substr(0, colon);
    credentials->password = text.substr(colon + 1);
  }
  gnutls_memset(decoded.data, 0, decoded.size);
  gnutls_free(decoded.data);
  return credentials;
}

Users::Users(const std::vector<std::pair<std::string, std::string>>& name_and_hash, const Users* previous) {
  if (previous != nullptr) {
    key_ = previous->key_;
  } else {
    auto key = std::make_shared<Digest>();
    gnutls_rnd(GNUTLS_RND_KEY, key->data(), key->size());
    key_ = std::move(key);
  }
  for (const auto& [name, hash] : name_and_hash) {
    users_.push_back({name, hash, std::nullopt});
    if (previous != nullptr) {
      const std::lock_guard lock(previous->mutex_);
      const auto [index, known] = previous->find(name);
      if (known && previous->users_[index].hash == hash) {
        users_.back().seen = previous->users_[index].seen;
      }
    }
  }
}

bool Users::remembers(const Credentials& credentials) const {
  const auto [index, known] = find(credentials.user);
  const auto wanted = digest(credentials.password);
  const std::lock_guard lock(mutex_);
  const auto& seen = users_[index].seen;
  return seen && gnutls_memcmp(seen->data(), wanted.data(), wanted.size()) == 0 && known;
}

bool Users::verify(const Credentials& credentials) const {
  const auto [index, known] = find(credentials.user);
  const auto& hash = users_[index].hash;  // never changes
  const auto work = std::make_unique<crypt_data>();
  const char* result = ::crypt_r(credentials.password.c_str(), hash.c_str(), work.get());
  const bool right = result != nullptr && equal(result, hash) && known;
  ::explicit_bzero(work.get(), sizeof(*work));
  if (right) {
    const auto seen = digest(credentials.password);
    const std::lock_guard lock(mutex_);
    users_[index].seen = seen;
  }
  return right;
}

std::pair<std::size_t, bool> Users::find(const std::string& name) const {
  const auto user = std::find_if(users_.begin(), users_.end(), [&](const User& known) { return known.name == name; });
  if (user != users_.end()) {
    return {static_cast<std::size_t>(user - users_.begin()), true};
  }
  // Always the same one for the same name, as if the hash were its own; hashes may differ in cost.
  const auto chosen = digest(name);
  return {(std::size_t{chosen[0]} << 8U | chosen[1]) % users_.size(), false};
}

Users::Digest Users::digest(std::string_view text) const {
  Digest result{};
  gnutls_hmac_fast(GNUTLS_MAC_SHA256, key_->data(), key_->size(), text.data(), text.size(), result.data());
  return result;
}

util::Result<std::shared_ptr<const Protection>> make_protection(const Security& security, const Protection* previous) {
  auto protection = std::make_shared<Protection>();
  protection->headers = security.headers;
  if (security.tls) {
    auto tls = Tls::make(*security.tls);
    if (!tls) {
      return tl::unexpected(std::move(tls.error()));
    }
    protection->tls = std::move(*tls);
    protection->requires_client_certificates = security.tls->require_client && security.tls->verify_client;
  }
  if (!security.users.empty()) {
    protection->users = std::make_shared<Users>(security.users, previous != nullptr ? previous->users.get() : nullptr);
  }
  return protection;
}

bool is_own_host(std::string_view host, const std::vector<std::string>& names) {
  if (host.empty()) {
    return true;
  }
  if (host.front() == '[') {
    const auto end = host.find(']');
    if (end == std::string_view::npos) {
      return false;
    }
    const auto rest = host.substr(end + 1);
    return is_address(std::string(host.substr(1, end - 1)), AF_INET6) &&
           (rest.empty() || (rest.front() == ':' && is_port(rest.substr(1))));
  }
  const auto colon = host.find(':');
  std::string_view name = host.substr(0, colon);
  if (colon != std::string_view::npos && !is_port(host.substr(colon + 1))) {
    return false;
  }
  if (!name.empty() && name.back() == '.') {
    name.remove_suffix(1);
  }
  return is_address(std::string(name), AF_INET) || is_localhost(name) ||
         std::any_of(names.begin(), names.end(),
                     [name](const std::string& known) { return is_same_name(name, known); });
}

}  // namespace ssdpulse::http
