// SPDX-License-Identifier: Apache-2.0
// CAh of Western Digital's data center drives, which comes in two customers' layouts and does not show which: one with
// fixed places and media writes in bytes, and one with Intel's items under keys 0 to Ch. The second is recognised by
// its keys, the first by what it leaves empty; a page that is neither is refused.
#include "daemon/sources/nvme/pages/gates.h"
#include "daemon/sources/nvme/pages/items.h"

namespace ssdpulse::nvme {
namespace {

constexpr std::uint16_t kBytes = 512;

// Fixed places.
constexpr std::size_t kUsed = 120;  // all bytes from here are reserved
constexpr Field kFields[] = {
    {16, 16, F::media_read_bytes},
    {32, 2, F::bad_blocks_normalized_ratio, kPercent, "all"},
    {34, 6, F::bad_blocks, kCount, "all"},
    {40, 8, F::uncorrectable_reads, kCount, "all"},
    {48, 8, F::soft_ecc_errors},
    {56, 4, F::end_to_end_errors, kCount, "detected"},
    {60, 4, F::end_to_end_errors, kCount, "corrected"},
    {64, 1, F::system_area_used_ratio, kPercent},
    {65, 4, F::block_erases_max, kCount, "all"},
    {69, 4, F::block_erases_min, kCount, "all"},
    {73, 8, F::refreshes},
    {83, 6, F::program_failures, kCount, "all"},  // after two bytes of a normalized value
    {91, 6, F::erase_failures, kCount, "user"},
    {99, 6, F::erase_failures, kCount, "system"},
    {105, 1, F::thermal_throttle_level},
    {106, 1, F::thermal_throttle_events},
    {107, 8, F::pcie_correctable_errors},
    {115, 4, F::incomplete_shutdowns},
    {119, 1, F::free_blocks_ratio, kPercent, "user"},
};

// Items: raw values are seven bytes from here.
constexpr std::size_t kItem = 12;
constexpr std::size_t kItems = 13;
constexpr std::size_t kRaw = 5;
constexpr std::size_t kMediaItem = 11;
constexpr std::size_t kHostItem = 12;
constexpr Field kItemFields[] = {
    {kItem * 0 + kRaw, 7, F::program_failures, kCount, "all"},
    {kItem * 1 + kRaw, 7, F::erase_failures, kCount, "all"},
    {kItem * 2 + kRaw, 2, F::block_erases_min, kCount, "all"},
    {kItem * 2 + kRaw + 2, 2, F::block_erases_max, kCount, "all"},
    {kItem * 2 + kRaw + 4, 2, F::block_erases_mean, kCount, "all"},
    {kItem * 3 + kRaw, 7, F::end_to_end_errors, kCount, "detected"},
    {kItem * 4 + kRaw, 7, F::pcie_crc_errors},
    {kItem * 8 + kRaw + 1, 4, F::thermal_throttle_events},
};

bool is_items(Bytes page) {
  for (std::size_t item = 0; item < kItems; ++item) {
    if (page[kItem * item] != item) {
      return false;
    }
  }
  return true;
}

PageContent decode_items(Bytes page) {
  const auto read = [&](std::size_t item) {
    return read_counter(page, kItem * item + kRaw, 7, 0, model::Rounding::unknown, Zero::not_reported);
  };
  PageContent content;
  add_fields(page, kItemFields, content.values);
  content.writes = {.host = read(kHostItem), .media = read(kMediaItem)};
  return content;
}

util::Result<PageContent> decode(Bytes page, const model::NvmeIdentity& /*identity*/) {
  if (is_items(page)) {
    return decode_items(page);
  }
  if (!all_zero(page.subspan(kUsed)) || page[kUsed - 1] > 100) {
    return util::fail("neither of Western Digital's layouts");
  }
  PageContent content;
  content.writes.media = read_counter(page, 0, 16, 1, model::Rounding::exact, Zero::not_reported);
  if (!content.writes.media) {
    return util::fail("not Western Digital's page: no media writes");
  }
  add_fields(page, kFields, content.values);
  return content;
}

constexpr Family kDrives[] = {{kHgst, "HUS"}, {kWesternDigital, "HUS"}, {kHgst, "WUS"}, {kWesternDigital, "WUS"}};

}  // namespace

extern const LogPage kWdcCustomerSmart{
    .name = "wdc_customer_smart",
    .source = "wdc_customer",
    .lid = 0xca,
    .bytes = kBytes,
    .offered = [](const model::NvmeIdentity& identity) { return is_of(identity, kDrives); },
    .decode_whole = decode,
};

}  // namespace ssdpulse::nvme
