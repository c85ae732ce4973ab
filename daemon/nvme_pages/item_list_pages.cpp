// SPDX-License-Identifier: Apache-2.0
#include "daemon/nvme_pages/page_fields.h"

namespace ssdpulse::nvme {

// CAh as Intel designed it and others adopted it: twelve-byte items, F4h media and F5h host writes. What the other keys
// mean differs by vendor, and so does whether the unit of 32 MiB is certain.
// On Memblaze's drives, byte 511 shows which of its formats it is; the format with ten-byte items is also SSSTC's.
// Memblaze's oldest format is not read: its two counters begin at different events.

namespace {

constexpr std::size_t kMemblazeVersion = 511;
constexpr std::uint8_t kIntelMediaKey = 0xf4;
constexpr std::uint8_t kHostKey = 0xf5;
constexpr std::uint32_t kUnit = 32U << 20;
constexpr std::uint32_t kUnknownUnit = 0;
constexpr Scale kUnits{.numerator = kUnit};
// Of Solidigm, as in nvme-cli's plugins/solidigm.
constexpr Uuid kSolidigmUuid{0x96, 0x19, 0x58, 0x6e, 0xc1, 0x1b, 0x43, 0xad,
                             0xaa, 0xaa, 0x65, 0x41, 0x87, 0xf6, 0xbb, 0xb2};

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
  content.writes = read_item_counters(list, format.layout, kIntelMediaKey, kHostKey, format.unit_bytes);
  return content;
}

template <const Format& kFormat>
util::Result<PageContent> decode_page(Bytes page, const model::NvmeIdentity& /*identity*/) {
  return decode_list(page, kFormat);
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
                             util::Result<PageContent> (*decode)(Bytes, const model::NvmeIdentity&),
                             const Uuid* uuid = nullptr) {
  return {.name = name, .source = source, .lid = 0xca, .uuid = uuid, .offered = offered, .decode_whole = decode};
}

constexpr Family kIntelDrives[] = {{kIntel, ""}, {kSolidigm, ""}};

}  // namespace

extern const LogPage kIntelSmart =
    items_page("intel_smart", "intel", is_of<kIntelDrives>, decode_page<kIntelFormat>, &kSolidigmUuid);

extern const LogPage kMemblazeSmart =
    items_page("memblaze_smart", "memblaze", has_current_memblaze_format, decode_memblaze);

extern const LogPage kYmtcSmart = items_page(
    "ymtc_smart", "ymtc",
    [](const model::NvmeIdentity& identity) {
      return identity.vendor_id == kYmtc && !identity.model.starts_with("ZHITAI");  // client drives
    },
    decode_page<kYmtcFormat>);

extern const LogPage kDapustorSmart =
    items_page("dapustor_smart", "dapustor", is_of_vendor<kDapustor>, decode_page<kOtherFormat>);

// It compresses: writing less than one byte to the media for a byte from the host is not an error.
extern const LogPage kScalefluxSmart =
    items_page("scaleflux_smart", "scaleflux", is_of_vendor<kScaleflux>, decode_page<kOtherFormat>);

extern const LogPage kSsstcSmart =
    items_page("ssstc_smart", "ssstc", is_of_vendor<kSsstc>, decode_page<kTenByteFormat>);

// CAh of Samsung's data center drives: Intel's items, then counters at fixed offsets. The unit of the two write
// counters is published nowhere, but it is the same for both.

namespace {

constexpr std::size_t kItemsBytes = 13 * kTwelveBytes.bytes;  // fixed offsets begin at 256
constexpr std::size_t kPresence = 3092;

constexpr Field kSamsungFields[] = {
    {312, 4, F::bad_blocks, kCount, "all"},
    {320, 4, F::reserved_blocks, kCount, "unused"},
    {324, 8, F::background_operations, kCount, "read_reclaim"},
    {332, 8, F::uncorrectable_reads, kCount, "all"},
    {340, 4, F::reserved_blocks, kCount, "used"},
};

util::Result<PageContent> decode_samsung(Bytes page, const model::NvmeIdentity& /*identity*/) {
  if (page[0] != kCommon[0].key) {
    return util::fail("not Samsung's page: it does not begin with key abh");
  }
  const auto read = [&](std::size_t offset) {
    return read_counter(page, offset, 16, kUnknownUnit, model::Rounding::unknown, Zero::not_reported);
  };
  PageContent content;
  const Bytes items = page.first(kItemsBytes);
  add_items(items, kTwelveBytes, kCommon, content.values);
  add_items(items, kTwelveBytes, kTwelveByteItems, content.values);
  add_items(items, kTwelveBytes, kCrcItems, content.values);
  add_fields(page, kSamsungFields, content.values);
  content.writes = {.host = read(264), .media = read(280)};
  return content;
}

}  // namespace

extern const LogPage kSamsungSmart{
    .name = "samsung_smart",
    .source = "samsung",
    .lid = 0xca,
    // Drives that have the page say so in the Identify Controller data structure.
    .offered =
        [](const model::NvmeIdentity& identity) {
          return identity.vendor_id == kSamsung && identify_byte(identity, kPresence) == 1;
        },
    .decode_whole = decode_samsung,
};

// Micron's D0h (data center drives: fixed offsets, media writes in bytes) and CAh (client drives: Intel's items under
// keys of Micron's own, media writes in GiB). FBh and C0h are in ocp_pages.cpp.

namespace {

constexpr std::uint32_t kGibibyte = 1U << 30;
constexpr std::uint8_t kMicronMediaKey = 0xf9;

constexpr Field kMicronFields[] = {
    {12, 4, F::bad_blocks, kCount, "all"},
    {96, 8, F::erase_failures, kCount, "all"},
    {144, 16, F::program_failures, kCount, "all"},
};

util::Result<PageContent> decode_micron(Bytes page, const model::NvmeIdentity& /*identity*/) {
  PageContent content;
  content.writes.media = read_counter(page, 176, 8, 1, model::Rounding::exact, Zero::not_reported);
  if (!content.writes.media) {
    return util::fail("not Micron's page: no media writes");
  }
  add_fields(page, kMicronFields, content.values);
  return content;
}

constexpr ItemField kClientItems[] = {
    {0xea, {1, 4, F::thermal_throttle_seconds, kMinutes}},  // after a byte that shows whether it throttles now
    {0xfa, {0, 6, F::media_read_bytes, {.numerator = kGibibyte}}},
};

util::Result<PageContent> decode_client(Bytes page, const model::NvmeIdentity& /*identity*/) {
  const auto raw = find_item(page, kTwelveBytes, kMicronMediaKey);
  if (!raw) {
    return util::fail("not Micron's page: no item with key f9h");
  }
  PageContent content;
  add_items(page, kTwelveBytes, kClientItems, content.values);
  content.writes.media = read_counter(*raw, 0, kRawBytes, kGibibyte, model::Rounding::unknown, Zero::not_reported);
  return content;
}

constexpr Family kClientDrives[] = {{kMicron, "Micron_2"}, {kMicron, "Micron_3"}, {kMicron, "MTFD"}};

}  // namespace

extern const LogPage kMicronSmart{
    .name = "micron_smart",
    .source = "micron",
    .lid = 0xd0,
    .offered = is_of<kMicronDataCenter>,
    .decode_whole = decode_micron,
};

extern const LogPage kMicronClientSmart{
    .name = "micron_client_smart",
    .source = "micron_client",
    .lid = 0xca,
    .offered = is_of<kClientDrives>,
    .decode_whole = decode_client,
};

}  // namespace ssdpulse::nvme
