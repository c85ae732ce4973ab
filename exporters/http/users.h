// SPDX-License-Identifier: Apache-2.0
// Users: basic authentication against bcrypt hashes.
// A password that was right is recognised by a keyed hash of it, so that a scrape costs no bcrypt; the password itself
// is not kept. An unknown user costs as much as a known one: some known user's hash is compared, and the result
// ignored.
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

}  // namespace ssdpulse::http
