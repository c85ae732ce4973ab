// SPDX-License-Identifier: Apache-2.0
// 09h, Endurance Group Information (NVM Express Base 2.x, 5.1.12.1.10): host and media writes of one group, in units of
// 10^9 bytes, rounded up; 0 means not reported. unit_calibration.h detects firmware that counts in other units.
#include "daemon/sources/nvme/pages/fields.h"
#include "daemon/sources/nvme/pages/gates.h"

namespace ssdpulse::nvme {
namespace {

constexpr std::uint16_t kBytes = 512;

constexpr Field kFields[] = {
    {3, 1, F::endurance_group_available_spare_ratio, kPercent},
    {4, 1, F::endurance_group_available_spare_threshold_ratio, kPercent},
    {5, 1, F::endurance_group_percentage_used_ratio, kPercent},
    {32, 16, F::endurance_group_endurance_estimate_bytes, kBillions, {}, Zero::not_reported},
    {48, 16, F::endurance_group_read_bytes, kBillions, {}, Zero::not_reported},
    {64, 16, F::endurance_group_written_bytes, kBillions, {}, Zero::not_reported},
    {80, 16, F::endurance_group_media_written_bytes, kBillions, {}, Zero::not_reported},
    {96, 16, F::endurance_group_host_commands, kCount, "read"},
    {112, 16, F::endurance_group_host_commands, kCount, "write"},
    {128, 16, F::endurance_group_media_errors},
    {144, 16, F::endurance_group_error_log_entries},
    {160, 16, F::endurance_group_capacity_bytes, kCount, {}, Zero::not_reported},
};
// Where the capacity is reported, 0 unallocated bytes is a value.
constexpr Field kUnallocated[] = {{176, 16, F::endurance_group_unallocated_bytes}};

util::Result<PageContent> decode(Bytes page, const model::NvmeIdentity& /*identity*/) {
  if (all_zero(page)) {
    return PageContent{};  // nothing is reported about this group: its spare is not 0 either
  }
  constexpr auto kUnit = std::uint64_t{1'000'000'000};
  const auto read = [&](std::size_t offset) {
    return read_counter(page, offset, 16, kUnit, model::Rounding::up, Zero::not_reported);
  };
  PageContent content;
  add_warnings(page[0], WarningsOf::endurance_group, F::endurance_group_warning, content.values);
  add_fields(page, kFields, content.values);
  if (read_count(page, 160, 16, Zero::not_reported)) {
    add_fields(page, kUnallocated, content.values);
  }
  content.writes = {.host = read(64), .media = read(80)};
  content.endurance_estimate = read(32);
  content.percentage_used = scaled(page[5], kPercent);
  return content;
}

}  // namespace

extern const LogPage kEnduranceGroup{
    .name = "endurance_group",
    .source = "endurance_group",
    .lid = 0x09,
    .bytes = kBytes,
    .scope = Scope::no_namespace,
    .per_endurance_group = true,
    .offered =
        [](const model::NvmeIdentity& identity) { return (identity.controller_attributes & kHasEnduranceGroups) != 0; },
    .decode_whole = decode,
};

}  // namespace ssdpulse::nvme
