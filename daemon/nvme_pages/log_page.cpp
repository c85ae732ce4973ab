// SPDX-License-Identifier: Apache-2.0
// All log pages, in the order in which they are trusted, as add_values() keeps the first value of a series: SMART
// first, then of those that count writes exact pairs of counters, standards, vendors, and coarse ones last.
#include "daemon/nvme_pages/log_page.h"

#include <algorithm>
#include <string>

// NOLINTBEGIN(cppcoreguidelines-macro-usage): a line for each page, which declares it, too
#define SSDPULSE_LOG_PAGES(page)           \
  page(kSmart)                   /* 02h */ \
      page(kFdpConfigurations)   /* 20h */ \
      page(kFdpHandleUsage)      /* 21h */ \
      page(kFdpStatistics)       /* 22h */ \
      page(kFdpHostEvents)       /* 23h */ \
      page(kFdpControllerEvents) /* 23h */ \
      page(kOcpSmart)            /* C0h */ \
      page(kBootSsd)             /* C0h */ \
      page(kIntelSmart)          /* CAh */ \
      page(kMemblazeSmart)       /* CAh */ \
      page(kYmtcSmart)           /* CAh */ \
      page(kDapustorSmart)       /* CAh */ \
      page(kScalefluxSmart)      /* CAh */ \
      page(kSsstcSmart)          /* CAh */ \
      page(kSamsungSmart)        /* CAh */ \
      page(kMicronNand)          /* FBh */ \
      page(kMicronSmart)         /* D0h */ \
      page(kMicronClientSmart)   /* CAh */ \
      page(kWdcCustomerSmart)    /* CAh */ \
      page(kWdcNand)             /* FBh */ \
      page(kWdcSmart)            /* D0h */ \
      page(kSeagateSmart)        /* C4h */ \
      page(kInspurSmart)         /* C0h */ \
      page(kEnduranceGroup)      /* 09h */ \
      page(kAmazonVolume)        /* D0h */
#define SSDPULSE_DECLARE(name) extern const LogPage name;
#define SSDPULSE_ELEMENT(name) name,
// NOLINTEND(cppcoreguidelines-macro-usage)

namespace ssdpulse::nvme {

SSDPULSE_LOG_PAGES(SSDPULSE_DECLARE)

std::span<const LogPage> log_pages() {
  static const std::array pages{SSDPULSE_LOG_PAGES(SSDPULSE_ELEMENT)};
  return pages;
}

util::Result<PageContent> LogPage::decode(Bytes read, const model::NvmeIdentity& identity) const {
  if (read.size() < bytes) {
    return util::fail("short page: " + std::to_string(read.size()) + " of " + std::to_string(bytes) + " bytes");
  }
  return decode_whole(read.first(bytes), identity);
}

void add_values(std::vector<model::NvmeValue>& drive, const std::vector<model::NvmeValue>& page) {
  for (const auto& value : page) {
    const bool has = std::any_of(drive.begin(), drive.end(),
                                 [&](const model::NvmeValue& known) { return model::same_series(known, value); });
    if (!has) {
      drive.push_back(value);
    }
  }
}

}  // namespace ssdpulse::nvme
