// SPDX-License-Identifier: Apache-2.0
// EmbeddedFile: a file of the page, in the binary as it is in assets/ or in deploy/runbooks.
#pragma once

#include <span>
#include <string_view>

namespace ssdpulse::page {

struct EmbeddedFile {
  std::string_view path;  // of the URL: "/" (index.html), /app.js, /runbooks/NAME.md
  std::string_view content_type;
  const char* begin;
  const char* end;

  [[nodiscard]] std::string_view bytes() const { return {begin, static_cast<std::size_t>(end - begin)}; }
};

std::span<const EmbeddedFile> embedded_files();

/// Null if there is none with this path.
const EmbeddedFile* embedded_file(std::string_view path);

}  // namespace ssdpulse::page
