// SPDX-License-Identifier: Apache-2.0
#include "daemon/base/keyed_hash.h"

#include <gnutls/crypto.h>
#include <sys/random.h>

namespace ssdpulse::util {

Result<HashKey> random_hash_key() {
  HashKey key{};
  if (::getrandom(key.data(), key.size(), 0) != static_cast<ssize_t>(key.size())) {
    return fail_errno("cannot get random numbers");
  }
  return key;
}

std::string keyed_hash(const HashKey& key, std::string_view text, std::size_t digits) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::array<std::uint8_t, 32> hash{};
  // Fails only if the algorithm is not available; even then the text stays hidden.
  gnutls_hmac_fast(GNUTLS_MAC_SHA256, key.data(), key.size(), text.data(), text.size(), hash.data());
  std::string shown;
  for (const std::uint8_t byte : hash) {
    shown += kDigits[byte >> 4U];
    shown += kDigits[byte & 0xfU];
  }
  return shown.substr(0, digits);
}

}  // namespace ssdpulse::util
