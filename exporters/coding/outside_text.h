// SPDX-License-Identifier: Apache-2.0
// Text from outside (names of models, mounts, programs; marks) for a page or a report.
#pragma once

#include <string>
#include <string_view>

namespace ssdpulse::coding {

/// Valid UTF-8 of at most 128 characters, and "…" if there was more. Invalid bytes, control characters, and marks that
/// change the direction of text become U+FFFD.
std::string outside_text(std::string_view from_outside);

/// The same for a sentence of ours that may contain such names: it is cut only after 4,000 characters, not within what
/// a person reads or copies.
std::string outside_sentence(std::string_view words);

}  // namespace ssdpulse::coding
