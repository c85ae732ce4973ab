// SPDX-License-Identifier: Apache-2.0
// C0h, SMART / Health Information Extended (OCP Datacenter NVMe SSD, 4.8.6): media writes in bytes. Many vendors use
// C0h for something else, so only the GUID at its end shows that it is this page.
#include <algorithm>

#include "daemon/sources/nvme/pages/fields.h"
#include "daemon/sources/nvme/pages/gates.h"

namespace ssdpulse::nvme {
namespace {

constexpr std::uint16_t kBytes = 512;
constexpr std::size_t kVersionOffset = 494;
constexpr std::size_t kGuidOffset = 496;
constexpr Uuid kGuid{0xc5, 0xaf, 0x10, 0x28, 0xea, 0xbf, 0xf2, 0xa4, 0x9c, 0x4f, 0x6f, 0x7c, 0xc9, 0x14, 0xd5, 0xaf};
constexpr Uuid kAskWith{0xc1, 0x94, 0xd5, 0x5b, 0xe0, 0x94, 0x47, 0x94, 0xa2, 0x1d, 0x29, 0x99, 0x8f, 0x56, 0xbe, 0x6f};

constexpr Field kFields[] = {
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

util::Result<PageContent> decode(Bytes page, const model::NvmeIdentity& /*identity*/) {
  if (!std::equal(kGuid.begin(), kGuid.end(), page.begin() + kGuidOffset)) {
    return util::fail("not the OCP page: its GUID is different");
  }
  PageContent content;
  add_fields(page, kFields, content.values);
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
    .bytes = kBytes,
    .uuid = &kAskWith,
    .offered =
        [](const model::NvmeIdentity& identity) { return lists(identity, kAskWith) || is_of(identity, kFamilies); },
    .decode_whole = decode,
};

}  // namespace ssdpulse::nvme
