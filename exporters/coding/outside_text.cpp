// SPDX-License-Identifier: Apache-2.0
#include "exporters/coding/outside_text.h"

#include <utf8.h>

#include <cstddef>
#include <iterator>

namespace ssdpulse::coding {
namespace {

constexpr std::size_t kLongest = 128;  // characters
constexpr std::size_t kLongestSentence = 4000;

/// Control characters, line and paragraph separators, and marks of direction (Unicode Bidirectional Algorithm, 2).
bool is_hostile(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x061C || c == 0x200E || c == 0x200F ||
         (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069) || c == 0xFEFF;
}

std::string cleaned(std::string_view from_outside, std::size_t longest) {
  std::string valid;
  utf8::replace_invalid(from_outside.begin(), from_outside.end(), std::back_inserter(valid));
  std::string result;
  std::size_t length = 0;
  auto at = valid.begin();
  for (; at != valid.end() && length < longest; ++length) {
    const char32_t c = utf8::next(at, valid.end());
    utf8::append(is_hostile(c) ? char32_t{0xFFFD} : c, std::back_inserter(result));
  }
  return at == valid.end() ? result : result + "…";
}

}  // namespace

std::string outside_text(std::string_view from_outside) { return cleaned(from_outside, kLongest); }

std::string outside_sentence(std::string_view words) { return cleaned(words, kLongestSentence); }

}  // namespace ssdpulse::coding
