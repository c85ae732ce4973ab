// SPDX-License-Identifier: Apache-2.0
#include "daemon/base/outside_text.h"

#include <utf8.h>

#include <algorithm>
#include <array>
#include <iterator>

namespace ssdpulse::util {
namespace {

constexpr char32_t kReplacement = 0xFFFD;

bool is_printable_ascii(char c) { return c >= 0x20 && c <= 0x7e; }

/// Control characters, line and paragraph separators, and marks of direction (Unicode Bidirectional Algorithm, 2).
bool is_hostile(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x061C || c == 0x200E || c == 0x200F ||
         (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069) || c == 0xFEFF;
}

/// With '?' for each character for which `is_kept` is false. Bytes that are part of none have one together, at most.
template <typename Predicate>
std::string in_ascii(std::string_view text, std::size_t max_characters, Predicate is_kept) {
  constexpr std::string_view kCut = "...";
  const auto continues = [&](std::size_t i) {
    return i > 0 && (static_cast<unsigned char>(text[i]) & 0xc0U) == 0x80 &&
           (static_cast<unsigned char>(text[i - 1]) & 0x80U) != 0;
  };
  std::string result;
  for (std::size_t i = 0; i < text.size() && result.size() <= max_characters; ++i) {
    if (!continues(i)) {
      result += is_kept(text[i]) ? text[i] : '?';
    }
  }
  if (result.size() > max_characters) {
    result.resize(max_characters - std::min(max_characters, kCut.size()));
    result += kCut;
  }
  return result;
}

void append_byte(char byte, std::string& to) {
  constexpr std::string_view kHex = "0123456789abcdef";
  utf8::append(kReplacement, std::back_inserter(to));
  const auto value = static_cast<unsigned char>(byte);
  to += kHex[value >> 4U];
  to += kHex[value & 0xfU];
}

/// No two texts become the same: what replaces a byte is itself replaced where it occurs.
std::string distinct(const std::string& text) {
  if (std::all_of(text.begin(), text.end(), is_printable_ascii)) {
    return text;
  }
  std::string result;
  for (auto at = text.begin(); at != text.end();) {
    for (const auto invalid = utf8::find_invalid(at, text.end()); at != invalid;) {
      const auto begin = at;
      const char32_t c = utf8::next(at, invalid);
      if (c == kReplacement || is_hostile(c)) {
        std::for_each(begin, at, [&](char byte) { append_byte(byte, result); });
      } else {
        result.append(begin, at);
      }
    }
    if (at != text.end()) {
      append_byte(*at++, result);
    }
  }
  return result;
}

std::string escaped(const std::string& text, std::string_view special) {
  std::string result;
  for (const char c : text) {
    if (special.find(c) != std::string_view::npos) {
      result += '\\';
    }
    result += c;
  }
  return result;
}

}  // namespace

std::string for_log(const OutsideText& text, std::size_t max_characters) {
  return in_ascii(without_padding(text.raw()), max_characters,
                  [](char c) { return is_printable_ascii(c) && c != '"' && c != '\\'; });
}

std::string for_json(const OutsideText& text, std::size_t max_characters) {
  std::string valid;
  utf8::replace_invalid(text.raw().begin(), text.raw().end(), std::back_inserter(valid));
  std::string result;
  std::size_t length = 0;
  auto at = valid.begin();
  for (; at != valid.end() && length < max_characters; ++length) {
    const char32_t c = utf8::next(at, valid.end());
    utf8::append(is_hostile(c) ? kReplacement : c, std::back_inserter(result));
  }
  return at == valid.end() ? result : result + "…";
}

std::string for_label(const OutsideText& text) { return distinct(text.raw()); }

std::string for_history(const OutsideText& text) { return distinct(text.raw()); }

std::string for_terminal(const OutsideText& text, std::size_t max_characters) {
  return in_ascii(text.raw(), max_characters, is_printable_ascii);
}

std::string for_html(const OutsideText& text, std::size_t max_characters) {
  constexpr auto kEntities = std::to_array<std::pair<char, std::string_view>>(
      {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}});
  std::string result;
  for (const char c : for_json(text, max_characters)) {
    const auto* entity = std::find_if(kEntities.begin(), kEntities.end(), [c](const auto& e) { return e.first == c; });
    result += entity == kEntities.end() ? std::string_view(&c, 1) : entity->second;
  }
  return result;
}

std::string for_markdown(const OutsideText& text, std::size_t max_characters) {
  return escaped(for_terminal(text, max_characters), "\\`*_[]<>|~&");
}

std::optional<std::string> for_shell(const OutsideText& text) {
  const std::string& name = text.raw();
  if (name.empty() || name.front() == '-' || !std::all_of(name.begin(), name.end(), is_printable_ascii)) {
    return std::nullopt;
  }
  const auto is_ordinary = [](char c) {
    const bool alphanumeric = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    return alphanumeric || std::string_view("_./:@%+=-").find(c) != std::string_view::npos;
  };
  if (std::all_of(name.begin(), name.end(), is_ordinary)) {
    return name;
  }
  std::string quoted = "'";
  for (const char c : name) {
    quoted += c == '\'' ? "'\\''" : std::string(1, c);
  }
  return quoted + "'";
}

bool is_plain_name(std::string_view name) {
  constexpr std::size_t kMaxNameBytes = 255;
  return !name.empty() && name.size() <= kMaxNameBytes && std::all_of(name.begin(), name.end(), [](char c) {
    return c > 0x20 && c <= 0x7e && std::string_view("\"'`").find(c) == std::string_view::npos;
  });
}

std::string_view without_padding(std::string_view text) {
  constexpr std::string_view kPadding(" \0\t\r\n", 5);
  const std::size_t first = text.find_first_not_of(kPadding);
  return first == std::string_view::npos ? std::string_view()
                                         : text.substr(first, text.find_last_not_of(kPadding) - first + 1);
}

}  // namespace ssdpulse::util
