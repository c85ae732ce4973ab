// SPDX-License-Identifier: Apache-2.0
// OutsideText: text that somebody else has chosen: a drive (model, serial number, firmware), a user of this host (mount
// points, names of programs, cgroups and dm devices, options, marks), a server that answers, or a row of the history
// file. It may hold any bytes, of any number.
//
// It converts to nothing: no string, no stream, no format and no JSON takes it. Each sink has one function below that
// makes it harmless there, and only there. Strings convert to it, because distrust is always safe.
//
// Names of disks and tenants stay std::string, because they are keys everywhere. They are plain (is_plain_name()):
// where they come in, disks with other names are refused, and names of tenants are changed (clean_tenant_name()).
#pragma once

#include <compare>
#include <concepts>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace ssdpulse::util {

class OutsideText {
 public:
  OutsideText() = default;
  OutsideText(std::string bytes) : bytes_(std::move(bytes)) {}  // NOLINT(google-explicit-constructor), like the next
  OutsideText(std::string_view bytes) : bytes_(bytes) {}        // NOLINT(google-explicit-constructor)
  OutsideText(const char* bytes) : bytes_(bytes) {}             // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool empty() const { return bytes_.empty(); }
  [[nodiscard]] bool starts_with(std::string_view beginning) const { return bytes_.starts_with(beginning); }
  [[nodiscard]] bool ends_with(std::string_view end) const { return bytes_.ends_with(end); }
  [[nodiscard]] bool contains(std::string_view part) const { return bytes_.find(part) != std::string::npos; }
  void clear() { bytes_.clear(); }

  /// Never to be shown or stored: only to compare, to take apart, to look up and to open.
  /// tests/static/test_outside_text.py lists who may ask for it.
  [[nodiscard]] const std::string& raw() const { return bytes_; }

  auto operator<=>(const OutsideText&) const = default;
  bool operator==(const OutsideText&) const = default;
  template <std::convertible_to<std::string_view> Text>
  friend bool operator==(const OutsideText& text, const Text& other) {
    return text.bytes_ == std::string_view(other);
  }

 private:
  std::string bytes_;
};

// What is longer is cut, and ends in "...", or in "…" where that is possible. `max_characters` includes the first, not
// the second, and nothing that HTML and Markdown need to escape.
inline constexpr std::size_t kLongestName = 128;       // characters that are shown of a name
inline constexpr std::size_t kLongestSentence = 4000;  // of a sentence of ours that contains names

/// For a line of the log, and its fields in the journal and in JSON: printable ASCII without quotes and backslashes,
/// which would end a field; else '?'. Without blanks at the ends. The caller writes the quotes.
std::string for_log(const OutsideText& text, std::size_t max_characters = kLongestName);

/// For JSON, and so for the page and sentences that it shows: valid UTF-8; U+FFFD for invalid bytes, control
/// characters and marks of direction. Not escaped: for the library that writes the JSON.
std::string for_json(const OutsideText& text, std::size_t max_characters = kLongestName);

/// For a label of a metric: valid UTF-8, however long. Different texts stay different, so that no page has a series
/// twice: each byte of what for_json() would replace becomes U+FFFD and two hexadecimal digits. Not escaped: whoever
/// writes the page does that.
std::string for_label(const OutsideText& text);

/// For a row of the history: as for_label(), so that what is different has rows of its own.
std::string for_history(const OutsideText& text);

/// For a terminal: printable ASCII; else '?'.
std::string for_terminal(const OutsideText& text, std::size_t max_characters = kLongestName);

/// For HTML: as for_json(), and nothing that HTML interprets, also within quotes.
std::string for_html(const OutsideText& text, std::size_t max_characters = kLongestName);

/// For Markdown, within a line: printable ASCII, else '?', and nothing that Markdown, or the HTML in it, interprets.
/// Whatever shows it may still make links of bare URLs, and of names such as @name and #123.
std::string for_markdown(const OutsideText& text, std::size_t max_characters = kLongestName);

/// A word of a shell command. Nothing for what no command should contain: empty, an option, or not printable ASCII.
std::optional<std::string> for_shell(const OutsideText& text);

/// Fit to be a key, and for the log, JSON, labels and terminals; for HTML, Markdown and a shell it is OutsideText.
/// Printable ASCII without blanks and quotes, 1 to 255 bytes. Names of systemd's units may have backslashes.
bool is_plain_name(std::string_view name);

/// Without the blanks and NUL bytes that a fixed width is padded with.
std::string_view without_padding(std::string_view text);

}  // namespace ssdpulse::util
