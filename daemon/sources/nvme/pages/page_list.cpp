// SPDX-License-Identifier: Apache-2.0
// In which order are pages trusted? Exact pairs of counters first, then standards, vendors, and coarse ones last.
#include <algorithm>
#include <array>

#include "daemon/sources/nvme/pages/pages.h"

namespace ssdpulse::nvme {

std::span<const LogPage> log_pages() {
  static const std::array pages{
      kSmart,          kFdpConfigurations,   kFdpHandleUsage,   kFdpStatistics,
      kFdpHostEvents,  kFdpControllerEvents, kOcpSmart,         kBootSsd,
      kIntelSmart,     kMemblazeSmart,       kYmtcSmart,        kDapustorSmart,
      kScalefluxSmart, kSsstcSmart,          kSamsungSmart,     kMicronNand,
      kMicronSmart,    kMicronClientSmart,   kWdcCustomerSmart, kWdcNand,
      kWdcSmart,       kSeagateSmart,        kInspurSmart,      kEnduranceGroup,
      kAmazonVolume,
  };
  return pages;
}

void add_values(std::vector<model::NvmeValue>& drive, const std::vector<model::NvmeValue>& page) {
  for (const auto& value : page) {
    const bool reported = std::any_of(drive.begin(), drive.end(), [&](const model::NvmeValue& known) {
      return known.field == value.field && known.label == value.label && known.endurance_group == value.endurance_group;
    });
    if (!reported) {
      drive.push_back(value);
    }
  }
}

}  // namespace ssdpulse::nvme
