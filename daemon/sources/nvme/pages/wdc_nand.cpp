// SPDX-License-Identifier: Apache-2.0
// FBh of Western Digital's client drives: media writes are those to TLC and those to SLC. The version at byte 510 shows
// which of two layouts it is: 0 counts in bytes, 3 perhaps in data units.
#include "daemon/sources/nvme/pages/fields.h"
#include "daemon/sources/nvme/pages/gates.h"

namespace ssdpulse::nvme {
namespace {

constexpr std::uint16_t kBytes = 512;
constexpr std::size_t kVersionOffset = 510;

constexpr std::size_t kUsed0 = 68;  // of version 0: all bytes from here to the version are reserved
constexpr Field kFields0[] = {
    {32, 4, F::program_failures, kCount, "all"},
    {36, 4, F::erase_failures, kCount, "all"},
    {40, 4, F::bad_blocks, kCount, "all"},
    {52, 8, F::end_to_end_errors, kCount, "detected"},
};

// The layout of boot_ssd.cpp without its padding.
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

util::Result<PageContent> decode(Bytes page, const model::NvmeIdentity& /*identity*/) {
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
    .bytes = kBytes,
    .offered = offered,
    .decode_whole = decode,
    .media_in_bytes_or_data_units = true,
};

}  // namespace ssdpulse::nvme
