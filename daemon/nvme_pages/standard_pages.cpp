// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <string>

#include "daemon/nvme_pages/page_fields.h"

namespace ssdpulse::nvme {

// 02h, SMART / Health Information (NVM Express Base 2.x, 5.1.12.1.3): what every drive has.
// Its data units written are the host counter for all pages that count only the media.

namespace {

constexpr Field kSmartFields[] = {
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

util::Result<PageContent> decode_smart(Bytes page, const model::NvmeIdentity& identity) {
  // Controllers that fail this way still report success; no drive has a temperature of 0 K.
  if (all_zero(page)) {
    return util::fail("the page is all zero");
  }
  PageContent content;
  add_warnings(page[0], WarningsOf::drive, F::critical_warning, content.values);
  if (has_attribute<kHasEnduranceGroups>(identity)) {
    add_warnings(page[6], WarningsOf::endurance_group, F::endurance_groups_warning, content.values);
  }
  add_fields(page, kSmartFields, content.values);
  content.writes.host = read_counter(page, 48, 16, 512'000, model::Rounding::up, Zero::not_reported);
  content.percentage_used = scaled(page[5], kPercent);
  return content;
}

}  // namespace

extern const LogPage kSmart{
    .name = "smart",
    .lid = kSmartLid,
    .offered = [](const model::NvmeIdentity&) { return true; },
    .decode_whole = decode_smart,
};

// 09h, Endurance Group Information (NVM Express Base 2.x, 5.1.12.1.10): host and media writes of one group, in units of
// 10^9 bytes, rounded up; 0 means not reported. unit_of_endurance_groups() detects firmware that counts in other units.

namespace {

constexpr Field kEnduranceGroupFields[] = {
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

util::Result<PageContent> decode_endurance_group(Bytes page, const model::NvmeIdentity& /*identity*/) {
  if (all_zero(page)) {
    return PageContent{};  // nothing is reported about this group: its spare is not 0 either
  }
  constexpr std::uint64_t kUnit = kBillions.numerator;
  const auto read = [&](std::size_t offset) {
    return read_counter(page, offset, 16, kUnit, model::Rounding::up, Zero::not_reported);
  };
  PageContent content;
  add_warnings(page[0], WarningsOf::endurance_group, F::endurance_group_warning, content.values);
  add_fields(page, kEnduranceGroupFields, content.values);
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
    .scope = Scope::no_namespace,
    .per_endurance_group = true,
    .offered = has_attribute<kHasEnduranceGroups>,
    .decode_whole = decode_endurance_group,
};

// 20h, FDP Configurations (NVM Express Base 2.x, 5.1.12.1.28): what each configuration of an endurance group offers. A
// list of descriptors that contain their own length. It does not show which one is on: that is a feature, not a log.

namespace {

/// A list that is as long as the drive makes it.
constexpr LogPage fdp_page(std::string_view name, std::uint8_t lid,
                           util::Result<PageContent> (*decode)(Bytes, const model::NvmeIdentity&),
                           std::uint8_t lsp = 0) {
  return {.name = name,
          .lid = lid,
          .lsp = lsp,
          .bytes = kMaxPageBytes,
          .scope = Scope::no_namespace,
          .per_endurance_group = true,
          .offered = has_attribute<kHasDataPlacement>,
          .decode_whole = decode};
}

constexpr std::size_t kConfigurationsHeader = 16;
constexpr std::size_t kConfigurationBytes = 64;  // without the handles at its end
constexpr std::uint8_t kValid = 0x80;

void add(F field, std::size_t configuration, std::uint64_t value, PageContent& content) {
  content.values.push_back({field, std::to_string(configuration), static_cast<double>(value)});
}

void add_configuration(Bytes descriptor, std::size_t index, PageContent& content) {
  add(F::fdp_reclaim_groups, index, read_number(descriptor, 4, 4), content);
  add(F::fdp_reclaim_unit_handles, index, read_number(descriptor, 8, 2), content);
  add(F::fdp_placement_identifiers, index, read_number(descriptor, 10, 2) + 1, content);
  add(F::fdp_reclaim_unit_bytes, index, read_number(descriptor, 16, 8), content);
  if (const auto limit = read_number(descriptor, 24, 4); limit != 0) {
    add(F::fdp_reclaim_unit_time_limit_seconds, index, limit, content);
  }
}

util::Result<PageContent> decode_configurations(Bytes page, const model::NvmeIdentity& /*identity*/) {
  const auto size = read_number(page, 4, 4);
  if (size < kConfigurationsHeader) {
    return util::fail("the page says that it is " + std::to_string(size) + " bytes long");
  }
  // Of a longer page, only what was asked for is read.
  Bytes rest = page.first(std::min<std::size_t>(size, page.size())).subspan(kConfigurationsHeader);
  PageContent content;
  const auto configurations = read_number(page, 0, 2) + 1;
  for (std::size_t index = 0; index < configurations && rest.size() >= kConfigurationBytes; ++index) {
    const auto length = static_cast<std::size_t>(read_number(rest, 0, 2));
    if (length < kConfigurationBytes) {
      return util::fail("a configuration says that it is " + std::to_string(length) + " bytes long");
    }
    if ((rest[2] & kValid) != 0) {
      add_configuration(rest, index, content);
    }
    rest = rest.subspan(std::min(length, rest.size()));
  }
  return content;
}

}  // namespace

extern const LogPage kFdpConfigurations = fdp_page("fdp_configurations", 0x20, decode_configurations);

// 21h, Reclaim Unit Handle Usage (NVM Express Base 2.x, 5.1.12.1.29): who uses each handle of an endurance group.

namespace {

constexpr std::size_t kHandleUsageHeader = 8;
constexpr std::size_t kHandleBytes = 8;
constexpr std::size_t kMaxHandles = (kMaxPageBytes - kHandleUsageHeader) / kHandleBytes;

util::Result<PageContent> decode_handle_usage(Bytes page, const model::NvmeIdentity& /*identity*/) {
  PageContent content;
  const auto handles = std::min<std::size_t>(read_number(page, 0, 2), kMaxHandles);
  for (std::size_t handle = 0; handle < handles; ++handle) {
    const auto use = read_number(page, kHandleUsageHeader + kHandleBytes * handle, 1);
    content.values.push_back({F::fdp_handle_use, std::to_string(handle), static_cast<double>(use)});
  }
  return content;
}

}  // namespace

extern const LogPage kFdpHandleUsage = fdp_page("fdp_handle_usage", 0x21, decode_handle_usage);

// 22h, FDP Statistics (NVM Express Base 2.x, 5.1.12.1.30): host and media writes in bytes, read at the same instant.
// The best source there is. It saturates, and it is cleared when the placement feature is set.

namespace {

constexpr Field kStatisticsFields[] = {
    {0, 16, F::fdp_host_written_bytes},
    {16, 16, F::fdp_media_written_bytes},
    {32, 16, F::fdp_media_erased_bytes},
};

util::Result<PageContent> decode_statistics(Bytes page, const model::NvmeIdentity& /*identity*/) {
  PageContent content;
  add_fields(page, kStatisticsFields, content.values);
  content.writes = {.host = read_counter(page, 0, 16, 1, model::Rounding::exact),
                    .media = read_counter(page, 16, 16, 1, model::Rounding::exact)};
  return content;
}

}  // namespace

extern const LogPage kFdpStatistics{
    .name = "fdp_statistics",
    .source = "fdp",
    .lid = 0x22,
    .bytes = 64,
    .scope = Scope::no_namespace,
    .per_endurance_group = true,
    .offered = has_attribute<kHasDataPlacement>,
    .decode_whole = decode_statistics,
};

// 23h, FDP Events (NVM Express Base 2.x, 5.1.12.1.31): what violated the host's placement. Two logs, by what caused the
// events. They are only counted by kind: those in the log now, not all that ever occurred.

namespace {

constexpr std::size_t kEventsHeader = 64;
constexpr std::size_t kEvent = 64;
constexpr std::size_t kMaxEvents = (kMaxPageBytes - kEventsHeader) / kEvent;

struct Kind {
  std::uint8_t type;
  std::string_view name;
};
constexpr Kind kHostKinds[] = {{0x00, "reclaim_unit_not_fully_written"},
                               {0x01, "reclaim_unit_time_limit_exceeded"},
                               {0x02, "controller_reset"},
                               {0x03, "invalid_placement_identifier"}};
constexpr Kind kControllerKinds[] = {{0x80, "media_reallocated"}, {0x81, "implicit_handle_change"}};

util::Result<PageContent> count(Bytes page, std::span<const Kind> kinds, std::string_view other) {
  std::array<std::size_t, 256> events{};
  const auto in_log = std::min<std::size_t>(read_number(page, 0, 4), kMaxEvents);
  for (std::size_t event = 0; event < in_log; ++event) {
    ++events.at(page[kEventsHeader + kEvent * event]);
  }
  PageContent content;
  std::size_t unknown = in_log;
  for (const auto& kind : kinds) {
    const auto of_kind = events.at(kind.type);
    unknown -= of_kind;
    content.values.push_back({F::fdp_events, std::string(kind.name), static_cast<double>(of_kind)});
  }
  content.values.push_back({F::fdp_events, std::string(other), static_cast<double>(unknown)});
  return content;
}

}  // namespace

extern const LogPage kFdpHostEvents = fdp_page(
    "fdp_host_events", 0x23,
    [](Bytes page, const model::NvmeIdentity&) { return count(page, kHostKinds, "other_host"); }, 1);
extern const LogPage kFdpControllerEvents =
    fdp_page("fdp_controller_events", 0x23,
             [](Bytes page, const model::NvmeIdentity&) { return count(page, kControllerKinds, "other_controller"); });

}  // namespace ssdpulse::nvme
