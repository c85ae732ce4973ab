// SPDX-License-Identifier: Apache-2.0
// What a server sends is not trusted with the terminal: whoever holds its port could move the cursor, change colours or
// write over what was printed.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace ssdpulse::client {

/// The first line of an answer, at most 300 bytes, as coding::outside_sentence().
std::string first_line_of(std::string_view body);

/// Makes each string of the answer, and each name of a field, what coding::outside_sentence() makes of it.
void clean_strings(nlohmann::json& answer);

}  // namespace ssdpulse::client
