// SPDX-License-Identifier: Apache-2.0
#include "daemon/sources/nvme/pages/impossible.h"

#include <algorithm>

#include "daemon/sources/nvme/pages/fields.h"
#include "daemon/util/number_text.h"

namespace ssdpulse::nvme {
namespace {

constexpr double kLongestLife = 3.2e9;     // seconds: a hundred years
constexpr double kBytesLimit = 64e9;       // per second: more than four lanes of PCI Express 7 carry
constexpr double kEventsLimit = 1e9;       // per second
constexpr double kOperationsAtOnce = 1e4;  // operations whose times are summed
constexpr double kColdest = -100;          // degrees Celsius
constexpr double kHottest = 200;

struct Range {
  double lowest;
  double highest;
};

Range possible(model::NvmeField field) {
  switch (field) {
    case F::available_spare_ratio:
    case F::available_spare_threshold_ratio:
    case F::endurance_group_available_spare_ratio:
    case F::endurance_group_available_spare_threshold_ratio:
      return {0, 1};
    case F::power_cycles:
      return {0, kLongestLife};
    case F::volume_io_seconds:
    case F::controller_busy_seconds:
      return {0, kOperationsAtOnce * kLongestLife};
    default:
      break;
  }
  const model::NvmeFieldDescription& description = model::kNvmeFieldDescriptions.at(static_cast<std::size_t>(field));
  if (description.unit == "celsius") {
    return {kColdest, kHottest};
  }
  if (description.unit == "ratio") {
    return {0, kEventsLimit};
  }
  if (description.counter && description.unit == "seconds") {
    return {0, kLongestLife};
  }
  return {0, kLongestLife * (description.unit == "bytes" ? kBytesLimit : kEventsLimit)};
}

bool within(double value, const Range& range) { return value >= range.lowest && value <= range.highest; }

/// A counter whose unit is not stated counts at least bytes.
bool within(const std::optional<model::ByteCounter>& counter) {
  return !counter ||
         static_cast<double>(counter->count) * static_cast<double>(std::max<std::uint64_t>(1, counter->unit_bytes)) <=
             kLongestLife * kBytesLimit;
}

bool is_sensor(const model::NvmeValue& value) {
  return value.field == F::temperature_celsius && value.label != "composite";
}

std::string words(const model::NvmeValue& value) {
  const auto& description = model::kNvmeFieldDescriptions.at(static_cast<std::size_t>(value.field));
  return std::string(description.metric) + (value.label.empty() ? "" : " (" + value.label + ")") + " would be " +
         util::number_text(value.value);
}

}  // namespace

void drop_missing_sensors(PageContent& content) {
  std::erase_if(content.values, [](const model::NvmeValue& value) {
    return is_sensor(value) && !within(value.value, possible(value.field));
  });
}

std::optional<std::string> find_impossible(const PageContent& content) {
  const auto found = std::find_if(content.values.begin(), content.values.end(), [](const model::NvmeValue& value) {
    return !is_sensor(value) && !within(value.value, possible(value.field));
  });
  if (found != content.values.end()) {
    return words(*found);
  }
  const auto warns = [](const model::NvmeValue& value) {
    return value.field == F::critical_warning && value.value > 0;
  };
  const auto is_warning = [](const model::NvmeValue& value) { return value.field == F::critical_warning; };
  const auto warnings = std::count_if(content.values.begin(), content.values.end(), is_warning);
  if (warnings > 0 && std::count_if(content.values.begin(), content.values.end(), warns) == warnings) {
    return "it would warn of everything at once";
  }
  for (const auto& counter : {content.writes.host, content.writes.media}) {
    if (!within(counter)) {
      return "more would be written than in a hundred years";
    }
  }
  return std::nullopt;
}

}  // namespace ssdpulse::nvme
