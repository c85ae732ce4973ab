// SPDX-License-Identifier: Apache-2.0
// CAh as Intel designed it and others adopted it: twelve-byte items, F4h media and F5h host writes. What the other keys
// mean differs by vendor, and so does whether the unit of 32 MiB is certain.
// On Memblaze's drives, byte 511 shows which of its formats it is; the one with ten-byte items is also SSSTC's.
// Memblaze's oldest format is not read: its two counters begin at different events.
#include "daemon/sources/nvme/pages/gates.h"
#include "daemon/sources/nvme/pages/items.h"

namespace ssdpulse::nvme {
namespace {

constexpr std::uint16_t kBytes = 512;
constexpr std::size_t kMemblazeVersion = 511;
constexpr std::uint8_t kMediaKey = 0xf4;
constexpr std::uint8_t kHostKey = 0xf5;
constexpr std::uint32_t kUnit = 32U << 20;
constexpr std::uint32_t kUnknownUnit = 0;
constexpr Scale kUnits{.numerator = kUnit};
constexpr Uuid kAskWith{0x96, 0x19, 0x58, 0x6e, 0xc1, 0x1b, 0x43, 0xad, 0xaa, 0xaa, 0x65, 0x41, 0x87, 0xf6, 0xbb, 0xb2};

// In the formats of all vendors, with items of twelve and of ten bytes.
constexpr ItemField kCommon[] = {
    {0xab, {0, 6, F::program_failures, kCount, "all"}},
    {0xac, {0, 6, F::erase_failures, kCount, "all"}},
    {0xad, {0, 2, F::block_erases_min, kCount, "all"}},
    {0xad, {2, 2, F::block_erases_max, kCount, "all"}},
    {0xad, {4, 2, F::block_erases_mean, kCount, "all"}},
    {0xea, {1, 4, F::thermal_throttle_events}},  // after a byte that shows how much it throttles now
};
constexpr ItemField kTwelveByteItems[] = {
    {0xb8, {0, 6, F::end_to_end_errors, kCount, "detected"}},
};
constexpr ItemField kIntelItems[] = {
    {0xc7, {0, 6, F::pcie_crc_errors}},
    {0xf8, {0, 6, F::media_read_bytes, kUnits}},
};
constexpr ItemField kCrcItems[] = {
    {0xc7, {0, 6, F::pcie_crc_errors}},
};
// Only in version 0: later ones count corrected DRAM errors under this key.
constexpr ItemField kMemblazeItems[] = {
    {0xfa, {0, 6, F::media_read_bytes, kUnits}},
};
constexpr ItemField kTenByteItems[] = {
    {0xc7, {0, 6, F::pcie_crc_errors}},
    {0xd4, {0, 6, F::background_operations, kCount, "garbage_collection"}},
    {0xda, {0, 6, F::die_failures}},
    {0xdb, {0, 6, F::background_operations, kCount, "wear_leveling"}},
    {0xdc, {0, 6, F::background_operations, kCount, "read_disturb"}},
    {0xdd, {0, 6, F::background_operations, kCount, "data_retention"}},
    {0xe1, {0, 6, F::background_operations, kCount, "block_padding"}},
};

struct Format {
  const ItemLayout& layout;
  std::uint32_t unit_bytes;
  std::span<const ItemField> generic;
  std::span<const ItemField> own;
};
constexpr Format kIntelFormat{kTwelveBytes, kUnit, kTwelveByteItems, kIntelItems};
constexpr Format kMemblaze0Format{kTwelveBytes, kUnit, kTwelveByteItems, kMemblazeItems};
constexpr Format kMemblaze2Format{kTwelveBytes, kUnit, kTwelveByteItems, {}};
constexpr Format kYmtcFormat{kTwelveBytes, kUnknownUnit, kTwelveByteItems, {}};
constexpr Format kOtherFormat{kTwelveBytes, kUnknownUnit, kTwelveByteItems, kCrcItems};
constexpr Format kTenByteFormat{kTenBytes, kUnknownUnit, {}, kTenByteItems};

util::Result<PageContent> decode_list(Bytes list, const Format& format) {
  // The first item of every known drive: without it, this is some other vendor page.
  if (list.empty() || list[0] != kCommon[0].key) {
    return util::fail("not a list of items: it does not begin with key abh");
  }
  PageContent content;
  add_items(list, format.layout, kCommon, content.values);
  add_items(list, format.layout, format.generic, content.values);
  add_items(list, format.layout, format.own, content.values);
  content.writes = read_item_counters(list, format.layout, kMediaKey, kHostKey, format.unit_bytes);
  return content;
}

util::Result<PageContent> decode_memblaze(Bytes page, const model::NvmeIdentity& /*identity*/) {
  const Bytes list = page.first(kMemblazeVersion);
  switch (page[kMemblazeVersion]) {
    case 0:
      return decode_list(list, kMemblaze0Format);
    case 2:
      return decode_list(list, kMemblaze2Format);
    case 3:
      return decode_list(list, kTenByteFormat);
    default:
      return util::fail("a version of Memblaze's page that is not known");
  }
}

bool has_current_memblaze_format(const model::NvmeIdentity& identity) {
  return identity.vendor_id == kMemblaze &&
         !(identity.model.starts_with("P") && identity.model.raw().substr(0, 5) < "P5920");
}

constexpr LogPage items_page(std::string_view name, std::string_view source,
                             bool (*offered)(const model::NvmeIdentity&),
                             util::Result<PageContent> (*decode_page)(Bytes, const model::NvmeIdentity&),
                             const Uuid* uuid = nullptr) {
  return {.name = name,
          .source = source,
          .lid = 0xca,
          .bytes = kBytes,
          .uuid = uuid,
          .offered = offered,
          .decode_whole = decode_page};
}

constexpr Family kIntelDrives[] = {{kIntel, ""}, {kSolidigm, ""}};

}  // namespace

extern const LogPage kIntelSmart = items_page(
    "intel_smart", "intel", [](const model::NvmeIdentity& identity) { return is_of(identity, kIntelDrives); },
    [](Bytes page, const model::NvmeIdentity&) { return decode_list(page, kIntelFormat); }, &kAskWith);

extern const LogPage kMemblazeSmart =
    items_page("memblaze_smart", "memblaze", has_current_memblaze_format, decode_memblaze);

extern const LogPage kYmtcSmart = items_page(
    "ymtc_smart", "ymtc",
    [](const model::NvmeIdentity& identity) {
      return identity.vendor_id == kYmtc && !identity.model.starts_with("ZHITAI");  // client drives
    },
    [](Bytes page, const model::NvmeIdentity&) { return decode_list(page, kYmtcFormat); });

extern const LogPage kDapustorSmart = items_page(
    "dapustor_smart", "dapustor", [](const model::NvmeIdentity& identity) { return identity.vendor_id == kDapustor; },
    [](Bytes page, const model::NvmeIdentity&) { return decode_list(page, kOtherFormat); });

// It compresses: writing less than one byte to the media for a byte from the host is not an error.
extern const LogPage kScalefluxSmart = items_page(
    "scaleflux_smart", "scaleflux",
    [](const model::NvmeIdentity& identity) { return identity.vendor_id == kScaleflux; },
    [](Bytes page, const model::NvmeIdentity&) { return decode_list(page, kOtherFormat); });

extern const LogPage kSsstcSmart = items_page(
    "ssstc_smart", "ssstc", [](const model::NvmeIdentity& identity) { return identity.vendor_id == kSsstc; },
    [](Bytes page, const model::NvmeIdentity&) { return decode_list(page, kTenByteFormat); });

}  // namespace ssdpulse::nvme
