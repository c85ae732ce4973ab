// SPDX-License-Identifier: Apache-2.0
#include "daemon/sources/nvme/pages/drive_reading.h"

#include <algorithm>

namespace ssdpulse::nvme {

const PageReading* DriveReading::smart() const {
  const auto found =
      std::find_if(pages.begin(), pages.end(), [](const PageReading& entry) { return entry.page->lid == kSmartLid; });
  return found == pages.end() ? nullptr : &*found;
}

std::optional<model::ByteCounter> DriveReading::host_before_media() const {
  const PageReading* page = smart();
  return page != nullptr ? page->content.writes.host : std::nullopt;
}

std::optional<model::ByteCounter> DriveReading::host_after_media() const {
  return smart_again ? smart_again->content.writes.host : std::nullopt;
}

}  // namespace ssdpulse::nvme
