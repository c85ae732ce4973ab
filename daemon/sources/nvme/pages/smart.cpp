// SPDX-License-Identifier: Apache-2.0
// 02h, SMART / Health Information (NVM Express Base 2.x, 5.1.12.1.3): what every drive has.
// Its data units written are the host counter for all pages that count only the media.
#include "daemon/sources/nvme/pages/fields.h"
#include "daemon/sources/nvme/pages/gates.h"

namespace ssdpulse::nvme {
namespace {

constexpr std::uint16_t kBytes = 512;

constexpr Field kFields[] = {
    {1, 2, F::temperature_celsius, kKelvin, "composite", Zero::not_reported},
    {3, 1, F::available_spare_ratio, kPercent},
    {4, 1, F::available_spare_threshold_ratio, kPercent},
    {5, 1, F::percentage_used_ratio, kPercent},
    {32, 16, F::data_units_read_bytes, kDataUnits, {}, Zero::not_reported},
    {48, 16, F::data_units_written_bytes, kDataUnits, {}, Zero::not_reported},
    {64, 16, F::host_commands, kCount, "read"},
    {80, 16, F::host_commands, kCount, "write"},
    {96, 16, F::controller_busy_seconds, kMinutes},
    {112, 16, F::power_cycles},
    {128, 16, F::power_on_seconds, kHours},
    {144, 16, F::unsafe_shutdowns},
    {160, 16, F::media_errors},
    {176, 16, F::error_log_entries},
    {192, 4, F::temperature_exceeded_seconds, kMinutes, "warning"},
    {196, 4, F::temperature_exceeded_seconds, kMinutes, "critical"},
    {200, 2, F::temperature_celsius, kKelvin, "1", Zero::not_reported},
    {202, 2, F::temperature_celsius, kKelvin, "2", Zero::not_reported},
    {204, 2, F::temperature_celsius, kKelvin, "3", Zero::not_reported},
    {206, 2, F::temperature_celsius, kKelvin, "4", Zero::not_reported},
    {208, 2, F::temperature_celsius, kKelvin, "5", Zero::not_reported},
    {210, 2, F::temperature_celsius, kKelvin, "6", Zero::not_reported},
    {212, 2, F::temperature_celsius, kKelvin, "7", Zero::not_reported},
    {214, 2, F::temperature_celsius, kKelvin, "8", Zero::not_reported},
    {216, 4, F::thermal_management_transitions, kCount, "1"},
    {220, 4, F::thermal_management_transitions, kCount, "2"},
    {224, 4, F::thermal_management_seconds, kCount, "1"},
    {228, 4, F::thermal_management_seconds, kCount, "2"},
};

util::Result<PageContent> decode(Bytes page, const model::NvmeIdentity& identity) {
  // Controllers that fail this way still report success; no drive has a temperature of 0 K.
  if (all_zero(page)) {
    return util::fail("the page is all zero");
  }
  PageContent content;
  add_warnings(page[0], WarningsOf::drive, F::critical_warning, content.values);
  if ((identity.controller_attributes & kHasEnduranceGroups) != 0) {
    add_warnings(page[6], WarningsOf::endurance_group, F::endurance_groups_warning, content.values);
  }
  add_fields(page, kFields, content.values);
  content.writes.host = read_counter(page, 48, 16, 512'000, model::Rounding::up, Zero::not_reported);
  content.percentage_used = scaled(page[5], kPercent);
  return content;
}

}  // namespace

extern const LogPage kSmart{
    .name = "smart",
    .lid = 0x02,
    .bytes = kBytes,
    .offered = [](const model::NvmeIdentity&) { return true; },
    .decode_whole = decode,
};

}  // namespace ssdpulse::nvme
