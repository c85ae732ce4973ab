// SPDX-License-Identifier: Apache-2.0
#include "exporters/http/users.h"

#include <crypt.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <string.h>
#include <strings.h>

#include <algorithm>

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
  const auto user = std::find_if(users_.begin(), users_.end(), [&](const User& one) { return one.name == name; });
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

}  // namespace ssdpulse::http
