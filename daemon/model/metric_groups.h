// SPDX-License-Identifier: Apache-2.0
// MetricGroups: the metrics that may be left out together. One name for each topic in the list of metrics, used by
// metrics.exclude and /metrics?collect[]=. `fleet` cuts across all of them. Names are a contract.
#pragma once

#include <algorithm>
#include <array>
#include <bitset>
#include <cstddef>
#include <optional>
#include <string_view>

namespace ssdpulse::model {

inline constexpr auto kMetricGroups =
    std::to_array<std::string_view>({"io", "writes", "discards", "volumes", "devices", "nvme", "nvme_logs",
                                     "flash_model", "spikes", "tenants", "host", "web", "self"});

/// What the critical and warning alerts read, from every group; see exporters/prometheus/families.cpp.
inline constexpr std::string_view kFleetProfile = "fleet";
inline constexpr std::size_t kFleetGroup = kMetricGroups.size();

/// By index in kMetricGroups, and kFleetGroup.
using MetricGroups = std::bitset<kMetricGroups.size() + 1>;

inline MetricGroups all_metric_groups() { return MetricGroups{}.set().reset(kFleetGroup); }
inline MetricGroups fleet_metric_groups() { return MetricGroups{}.set(kFleetGroup); }

inline std::optional<std::size_t> metric_group(std::string_view name) {
  const auto* found = std::find(kMetricGroups.begin(), kMetricGroups.end(), name);
  return found == kMetricGroups.end() ? std::nullopt
                                      : std::optional(static_cast<std::size_t>(found - kMetricGroups.begin()));
}

}  // namespace ssdpulse::model
