// SPDX-License-Identifier: Apache-2.0
#include "daemon/nvme_pages/page_fields.h"

namespace ssdpulse::nvme {

// CAh of Western Digital's data center drives, which comes in two customers' layouts and does not show which: one with
// fixed offsets and media writes in bytes, and one with Intel's items under keys 0 to Ch. The second is recognised by
// its keys, the first by what it leaves empty; a page that is neither is refused.

namespace {

// Fixed offsets.
constexpr std::size_t kCustomerUsed = 120;  // all bytes from here are reserved
constexpr Field kCustomerFields[] = {
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

util::Result<PageContent> decode_customer(Bytes page, const model::NvmeIdentity& /*identity*/) {
  if (is_items(page)) {
    return decode_items(page);
  }
  if (!all_zero(page.subspan(kCustomerUsed)) || page[kCustomerUsed - 1] > 100) {
    return util::fail("neither of Western Digital's layouts");
  }
  PageContent content;
  content.writes.media = read_counter(page, 0, 16, 1, model::Rounding::exact, Zero::not_reported);
  if (!content.writes.media) {
    return util::fail("not Western Digital's page: no media writes");
  }
  add_fields(page, kCustomerFields, content.values);
  return content;
}

constexpr Family kCustomerDrives[] = {
    {kHgst, "HUS"}, {kWesternDigital, "HUS"}, {kHgst, "WUS"}, {kWesternDigital, "WUS"}};

}  // namespace

extern const LogPage kWdcCustomerSmart{
    .name = "wdc_customer_smart",
    .source = "wdc_customer",
    .lid = 0xca,
    .offered = is_of<kCustomerDrives>,
    .decode_whole = decode_customer,
};

// FBh of Western Digital's client drives: media writes are those to TLC and those to SLC. The version at byte 510 shows
// which of two layouts it is: 0 counts in bytes, 3 perhaps in data units.

namespace {

constexpr std::size_t kVersionOffset = 510;

constexpr std::size_t kUsed0 = 68;  // of version 0: all bytes from here to the version are reserved
constexpr Field kFields0[] = {
    {32, 4, F::program_failures, kCount, "all"},
    {36, 4, F::erase_failures, kCount, "all"},
    {40, 4, F::bad_blocks, kCount, "all"},
    {52, 8, F::end_to_end_errors, kCount, "detected"},
};

// The layout of the boot SSDs' page without its padding.
constexpr Field kFields3[] = {
    {32, 2, F::bad_blocks_normalized_ratio, kPercent, "user"},
    {34, 6, F::bad_blocks, kCount, "user"},
    {40, 8, F::xor_recoveries},
    {48, 8, F::uncorrectable_reads, kCount, "user"},
    {56, 8, F::end_to_end_errors, kCount, "corrected"},
    {64, 4, F::end_to_end_errors, kCount, "detected"},
    {68, 4, F::end_to_end_errors, kCount, "uncorrected"},
    {72, 1, F::system_area_used_ratio, kPercent},
    {73, 8, F::block_erases_min, kCount, "tlc"},
    {81, 8, F::block_erases_max, kCount, "tlc"},
    {89, 8, F::block_erases_min, kCount, "slc"},
    {97, 8, F::block_erases_max, kCount, "slc"},
    {107, 6, F::program_failures, kCount, "user"},
    {115, 6, F::erase_failures, kCount, "user"},
    {121, 8, F::pcie_correctable_errors},
    {129, 1, F::free_blocks_ratio, kPercent, "user"},
    {138, 1, F::free_blocks_ratio, kPercent, "system"},
    {139, 16, F::deallocate_commands},
    {164, 1, F::back_pressure_ratio, kPercent},
    {165, 8, F::soft_ecc_errors},
    {173, 8, F::refreshes},
    {181, 2, F::bad_blocks_normalized_ratio, kPercent, "system"},
    {183, 6, F::bad_blocks, kCount, "system"},
    {189, 16, F::endurance_estimate_bytes, kCount, {}, Zero::not_reported},
    {205, 1, F::thermal_throttle_level},
    {206, 1, F::thermal_throttle_events},
    {207, 8, F::unaligned_ios},
};

util::Result<PageContent> decode_nand(Bytes page, const model::NvmeIdentity& /*identity*/) {
  const auto version = read_number(page, kVersionOffset, 2);
  if (version != 0 && version != 3) {
    return util::fail("a version of Western Digital's NAND page that is not known: " + std::to_string(version));
  }
  if (all_zero(page) || (version == 0 && !all_zero(page.subspan(kUsed0)))) {
    return util::fail("not Western Digital's NAND page: its reserved bytes are in use, or it is empty");
  }
  const auto written = [&](std::size_t offset) {
    return version == 0 ? read_counter(page, offset, 16, 1, model::Rounding::exact)
                        : read_counter(page, offset, 16, 0, model::Rounding::unknown);
  };
  PageContent content;
  if (version == 0) {
    add_fields(page, kFields0, content.values);
  } else {
    add_fields(page, kFields3, content.values);
    content.endurance_estimate = read_counter(page, 189, 16, 1, model::Rounding::exact, Zero::not_reported);
  }
  content.writes.media = sum_counters(written(0), written(16));
  content.media_includes_slc = true;
  return content;
}

bool offered(const model::NvmeIdentity& identity) {
  const auto has = [&](std::string_view name) { return identity.model.contains(name); };
  return identity.vendor_id == kSandisk && (has("SN720") || has("SN730") || has("SN810"));
}

}  // namespace

extern const LogPage kWdcNand{
    .name = "wdc_nand",
    .source = "wdc_nand",
    .lid = 0xfb,
    .offered = offered,
    .decode_whole = decode_nand,
    .media_in_bytes_or_data_units = true,
};

// D0h of Western Digital's data center drives: wear at fixed offsets. Not a source of write amplification: it counts
// media writes in pages whose size it does not report, and host writes in a unit that need not be the same.

namespace {

constexpr std::size_t kWearUsed = 104;  // all bytes from here are reserved

constexpr Field kWearFields[] = {
    {12, 4, F::uncorrectable_reads, kCount, "all"},
    {24, 4, F::reserved_blocks, kCount, "unused"},
    {28, 4, F::program_failures, kCount, "all"},
    {32, 4, F::erase_failures, kCount, "all"},
    {36, 4, F::die_failures},
    {48, 4, F::incomplete_shutdowns},
    {60, 4, F::bad_blocks, kCount, "all"},
    {64, 4, F::background_operations, kCount, "read_disturb"},
    {96, 4, F::thermal_throttle_events},
    {100, 4, F::erase_cycles_remaining_ratio, kPercent},
};

util::Result<PageContent> decode_wear(Bytes page, const model::NvmeIdentity& /*identity*/) {
  if (all_zero(page.first(kWearUsed)) || !all_zero(page.subspan(kWearUsed)) || read_number(page, 100, 4) > 100) {
    return util::fail("not Western Digital's page: its reserved bytes are in use, or it is empty");
  }
  PageContent content;
  add_fields(page, kWearFields, content.values);
  return content;
}

constexpr Family kWearDrives[] = {{kHgst, "WUS"}, {kWesternDigital, "WUS"}};

}  // namespace

extern const LogPage kWdcSmart{
    .name = "wdc_smart",
    .lid = 0xd0,
    .offered = is_of<kWearDrives>,
    .decode_whole = decode_wear,
};

}  // namespace ssdpulse::nvme
