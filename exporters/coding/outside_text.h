// SPDX-License-Identifier: Apache-2.0
// Text from outside (names of models, mounts, programs; marks) for a page or a report.
#pragma once

#include <string>
#include <string_view>

namespace ssdpulse::coding {

/// Valid UTF-8 of at most 128 characters, and "…" where there was more. Bytes that are none, control characters, and
/// marks that turn the direction of text become U+FFFD.
std::string outside_text(std::string_view from_outside);

/// The same of a sentence of ours that may hold such names: it is never cut within what a person reads or copies, but
/// after 4,000 characters.
std::string outside_sentence(std::string_view words);

}  // namespace ssdpulse::coding
