// SPDX-License-Identifier: Apache-2.0
// C0h of Hyperscale boot SSDs, identified by its GUID, and FBh of Micron's data center drives, which has the same
// layout: media writes are those to TLC and those to SLC. It is not certain whether in bytes or in data units.
#include <algorithm>

#include "daemon/sources/nvme/pages/fields.h"
#include "daemon/sources/nvme/pages/gates.h"

namespace ssdpulse::nvme {
namespace {

constexpr std::uint16_t kBytes = 512;
constexpr std::size_t kVersionOffset = 494;
constexpr std::size_t kGuidOffset = 496;
constexpr Uuid kGuid{0x65, 0x43, 0x88, 0x78, 0xac, 0xd8, 0x78, 0xa1, 0x66, 0x42, 0x1e, 0x0f, 0x92, 0xd7, 0x6d, 0xc4};

constexpr Field kFields[] = {
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
  add_fields(page, kFields, content.values);
  content.writes.media = sum_counters(written(0), written(16));
  content.endurance_estimate = read_counter(page, 226, 16, 1, model::Rounding::exact, Zero::not_reported);
  content.media_includes_slc = true;
  return content;
}

util::Result<PageContent> decode_boot(Bytes page, const model::NvmeIdentity& /*identity*/) {
  if (!std::equal(kGuid.begin(), kGuid.end(), page.begin() + kGuidOffset)) {
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
constexpr Family kMicronDrives[] = {
    {kMicron, "Micron_7300_"}, {kMicron, "Micron_7400_"}, {kMicron, "Micron_7450_"}, {kMicron, "Micron_9300_"}};
constexpr std::size_t kMicronCustomer = 3072 + 536;
constexpr std::uint8_t kBootCustomer = 0x16;

}  // namespace

extern const LogPage kBootSsd{
    .name = "boot_ssd_smart",
    .source = "boot_ssd",
    .lid = 0xc0,
    .bytes = kBytes,
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
    .bytes = kBytes,
    .offered = [](const model::NvmeIdentity& identity) { return is_of(identity, kMicronDrives); },
    .decode_whole = decode_micron,
    .media_in_bytes_or_data_units = true,
};

}  // namespace ssdpulse::nvme
