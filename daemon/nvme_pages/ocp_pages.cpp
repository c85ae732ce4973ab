// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "daemon/nvme_pages/page_fields.h"

namespace ssdpulse::nvme {

// C0h, SMART / Health Information Extended (OCP Datacenter NVMe SSD, 4.8.6): media writes in bytes. Many vendors use
// C0h for something else, so only the GUID at its end shows that it is this page.

namespace {

constexpr std::size_t kVersionOffset = 494;
constexpr std::size_t kGuidOffset = 496;
constexpr Uuid kOcpGuid{0xc5, 0xaf, 0x10, 0x28, 0xea, 0xbf, 0xf2, 0xa4, 0x9c, 0x4f, 0x6f, 0x7c, 0xc9, 0x14, 0xd5, 0xaf};
constexpr Uuid kAskWith{0xc1, 0x94, 0xd5, 0x5b, 0xe0, 0x94, 0x47, 0x94, 0xa2, 0x1d, 0x29, 0x99, 0x8f, 0x56, 0xbe, 0x6f};

constexpr Field kOcpFields[] = {
    {16, 16, F::media_read_bytes},
    {32, 6, F::bad_blocks, kCount, "user"},
    {38, 2, F::bad_blocks_normalized_ratio, kPercent, "user"},
    {40, 6, F::bad_blocks, kCount, "system"},
    {46, 2, F::bad_blocks_normalized_ratio, kPercent, "system"},
    {48, 8, F::xor_recoveries},
    {56, 8, F::uncorrectable_reads, kCount, "user"},
    {64, 8, F::soft_ecc_errors},
    {72, 4, F::end_to_end_errors, kCount, "detected"},
    {76, 4, F::end_to_end_errors, kCount, "corrected"},
    {80, 1, F::system_area_used_ratio, kPercent},
    {81, 7, F::refreshes},
    {88, 4, F::block_erases_max, kCount, "all"},
    {92, 4, F::block_erases_min, kCount, "all"},
    {96, 1, F::thermal_throttle_events},
    {97, 1, F::thermal_throttle_level},
    {104, 8, F::pcie_correctable_errors},
    {112, 4, F::incomplete_shutdowns},
    {120, 1, F::free_blocks_ratio, kPercent, "user"},
    {128, 2, F::capacitor_health_ratio, kPercent},
    {136, 8, F::unaligned_ios},
    {160, 16, F::power_loss_protection_starts},
    {176, 16, F::endurance_estimate_bytes, kCount, {}, Zero::not_reported},
    {192, 8, F::pcie_link_retrainings},
    {200, 8, F::power_state_changes},
};

// Reserved before version 4, and zero where a drive of that version has nothing to report.
constexpr std::uint64_t kDiesSince = 4;
constexpr Field kNewerFields[] = {
    {216, 2, F::dies, kCount, "total", Zero::not_reported},
    {218, 2, F::dies, kCount, "failures_tolerated"},
    {220, 2, F::dies, kCount, "offline"},
    {224, 8, F::block_erases_mean, kCount, "all", Zero::not_reported},
    {232, 4, F::command_timeouts, kCount, "all"},
    {236, 4, F::program_failures, kCount, "system"},
    {244, 4, F::uncorrectable_reads, kCount, "system"},
    {252, 4, F::erase_failures, kCount, "system"},
    {358, 6, F::bad_blocks, kCount, "die_in_use"},
    {364, 2, F::bad_blocks_normalized_ratio, kPercent, "die_in_use", Zero::not_reported},
};

// Drives that may have it without listing its UUID.
constexpr Family kFamilies[] = {
    {kQemu, ""},           {kHgst, ""},           {kWesternDigital, ""}, {kSandisk, "SN820CL"},    {kSolidigm, ""},
    {kMicron, "Micron_6"}, {kMicron, "Micron_7"}, {kMicron, "Micron_9"}, {kSamsung, "SAMSUNG MZ"}, {kKioxia, "KC"},
    {kKioxia, "KXD"},      {kToshiba, "KCD"},     {kToshiba, "KCM"},     {kToshiba, "KXD"},        {kSeagate, "XP"},
};

bool ends_with(Bytes page, const Uuid& guid) {
  return std::equal(guid.begin(), guid.end(), page.subspan(kGuidOffset).begin());
}

util::Result<PageContent> decode_ocp(Bytes page, const model::NvmeIdentity& /*identity*/) {
  if (!ends_with(page, kOcpGuid)) {
    return util::fail("not the OCP page: its GUID is different");
  }
  PageContent content;
  add_fields(page, kOcpFields, content.values);
  if (read_number(page, kVersionOffset, 2) >= kDiesSince) {
    add_fields(page, kNewerFields, content.values);
  }
  content.writes.media = read_counter(page, 0, 16, 1, model::Rounding::exact);
  content.endurance_estimate = read_counter(page, 176, 16, 1, model::Rounding::exact, Zero::not_reported);
  return content;
}

}  // namespace

extern const LogPage kOcpSmart{
    .name = "ocp_smart",
    .source = "ocp",
    .lid = 0xc0,
    .uuid = &kAskWith,
    .offered =
        [](const model::NvmeIdentity& identity) { return lists(identity, kAskWith) || is_of(identity, kFamilies); },
    .decode_whole = decode_ocp,
};

// C0h of Hyperscale boot SSDs, identified by its GUID, and FBh of Micron's data center drives, which has the same
// layout: media writes are those to TLC and those to SLC. It is not certain whether in bytes or in data units.

namespace {

constexpr Uuid kBootGuid{0x65, 0x43, 0x88, 0x78, 0xac, 0xd8, 0x78, 0xa1,
                         0x66, 0x42, 0x1e, 0x0f, 0x92, 0xd7, 0x6d, 0xc4};

constexpr Field kBootLayout[] = {
    {32, 2, F::bad_blocks_normalized_ratio, kPercent, "user"},
    {34, 6, F::bad_blocks, kCount, "user"},
    {40, 8, F::xor_recoveries},
    {48, 8, F::uncorrectable_reads, kCount, "user"},
    {56, 8, F::end_to_end_errors, kCount, "corrected"},
    {64, 8, F::end_to_end_errors, kCount, "detected"},
    {72, 8, F::end_to_end_errors, kCount, "uncorrected"},
    {80, 1, F::system_area_used_ratio, kPercent},
    {84, 8, F::block_erases_min, kCount, "tlc"},
    {92, 8, F::block_erases_max, kCount, "tlc"},
    {100, 8, F::block_erases_mean, kCount, "tlc"},
    {108, 8, F::block_erases_min, kCount, "slc"},
    {116, 8, F::block_erases_max, kCount, "slc"},
    {124, 8, F::block_erases_mean, kCount, "slc"},
    {134, 6, F::program_failures, kCount, "user"},
    {142, 6, F::erase_failures, kCount, "user"},
    {148, 8, F::pcie_correctable_errors},
    {156, 1, F::free_blocks_ratio, kPercent, "user"},
    {168, 1, F::free_blocks_ratio, kPercent, "system"},
    {172, 16, F::deallocate_commands},
    {198, 1, F::back_pressure_ratio, kPercent},
    {202, 8, F::soft_ecc_errors},
    {210, 8, F::refreshes},
    {218, 2, F::bad_blocks_normalized_ratio, kPercent, "system"},
    {220, 6, F::bad_blocks, kCount, "system"},
    {226, 16, F::endurance_estimate_bytes, kCount, {}, Zero::not_reported},
    {242, 1, F::thermal_throttle_level},
    {243, 1, F::thermal_throttle_events},
    {244, 8, F::unaligned_ios},
    {268, 4, F::command_timeouts, kCount, "read"},
    {272, 4, F::command_timeouts, kCount, "write"},
    {276, 4, F::command_timeouts, kCount, "trim"},
};
// Reserved in Micron's page.
constexpr Field kBootFields[] = {
    {284, 8, F::pcie_link_retrainings},
    {292, 8, F::power_state_changes},
};

PageContent decode_layout(Bytes page) {
  const auto written = [&](std::size_t offset) { return read_counter(page, offset, 16, 0, model::Rounding::unknown); };
  PageContent content;
  add_fields(page, kBootLayout, content.values);
  content.writes.media = sum_counters(written(0), written(16));
  content.endurance_estimate = read_counter(page, 226, 16, 1, model::Rounding::exact, Zero::not_reported);
  content.media_includes_slc = true;
  return content;
}

util::Result<PageContent> decode_boot(Bytes page, const model::NvmeIdentity& /*identity*/) {
  if (!ends_with(page, kBootGuid)) {
    return util::fail("not the boot SSD page: its GUID is different");
  }
  PageContent content = decode_layout(page);
  add_fields(page, kBootFields, content.values);
  return content;
}

util::Result<PageContent> decode_micron(Bytes page, const model::NvmeIdentity& /*identity*/) {
  if (read_number(page, kVersionOffset, 2) == 0 || page[156] > 100 || page[168] > 100) {
    return util::fail("not Micron's NAND page: no version, or more than all blocks are free");
  }
  return decode_layout(page);
}

constexpr Family kBootDrives[] = {{kSandisk, "SN820CL"}};
constexpr std::size_t kMicronCustomer = 3072 + 536;
constexpr std::uint8_t kBootCustomer = 0x16;

}  // namespace

extern const LogPage kBootSsd{
    .name = "boot_ssd_smart",
    .source = "boot_ssd",
    .lid = 0xc0,
    .offered =
        [](const model::NvmeIdentity& identity) {
          return is_of(identity, kBootDrives) ||
                 (identity.vendor_id == kMicron && identify_byte(identity, kMicronCustomer) == kBootCustomer);
        },
    .decode_whole = decode_boot,
    .media_in_bytes_or_data_units = true,
};

extern const LogPage kMicronNand{
    .name = "micron_nand",
    .source = "micron_nand",
    .lid = 0xfb,
    .offered = is_of<kMicronDataCenter>,
    .decode_whole = decode_micron,
    .media_in_bytes_or_data_units = true,
};

}  // namespace ssdpulse::nvme
