// SPDX-License-Identifier: Apache-2.0
#include "exporters/page/assets.h"

#include <algorithm>

#include "exporters/page/asset_table.h"

namespace ssdpulse::page {

std::span<const EmbeddedFile> embedded_files() { return kFiles; }

const EmbeddedFile* embedded_file(std::string_view path) {
  const auto* found = std::find_if(std::begin(kFiles), std::end(kFiles),
                                   [path](const EmbeddedFile& file) { return file.path == path; });
  return found == std::end(kFiles) ? nullptr : found;
}

}  // namespace ssdpulse::page
