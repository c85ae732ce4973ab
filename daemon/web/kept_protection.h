// SPDX-License-Identifier: Apache-2.0
// Kinds of protection that the pages have, so that none is lost unnoticed: neither by a reload nor by a restart. A web
// file that was cut short still parses, and would open the pages to everybody.
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <string>

#include "daemon/util/log_field.h"
#include "daemon/util/result.h"
#include "exporters/http/security.h"

namespace ssdpulse::web {

enum class ProtectionKind : std::uint8_t { tls, users, client_certificates };
using ProtectionKinds = std::set<ProtectionKind>;

/// Null: none.
ProtectionKinds kinds_of(const http::Protection* protection);

/// What `before` has and `now` lacks, in words: "TLS and users"; empty: nothing.
std::string lost_words(const ProtectionKinds& before, const ProtectionKinds& now);

/// For the log: "tls=yes users=listed client_certificates=not_required".
std::array<log::Field, 3> fields_of(const ProtectionKinds& kinds);

inline constexpr const char* kProtectionFileName = "web-protection";

/// What keep_protection() wrote last; none if there is no such file. Words that this version does not know are ignored.
util::Result<ProtectionKinds> kept_protection(const std::string& directory);

/// Whole or not at all. Does nothing if the same is kept already.
util::Result<void> keep_protection(const std::string& directory, const ProtectionKinds& kinds);

}  // namespace ssdpulse::web
