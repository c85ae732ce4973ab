// SPDX-License-Identifier: Apache-2.0
// Checks whether the bcrypt hash of a password is well formed, and can be verified within a request's time.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ssdpulse::config {

/// What is wrong with it; nothing if it is right. Never repeats the text.
std::optional<std::string> validate_password_hash(std::string_view text);

}  // namespace ssdpulse::config
