// SPDX-License-Identifier: Apache-2.0
// Which metrics may be left out together? One name for each topic of the list of metrics: metrics.exclude and
// /metrics?collect[]= use them. Names are a contract.
#pragma once

#include <algorithm>
#include <array>
#include <bitset>
#include <cstddef>
#include <optional>
#include <string_view>

namespace ssdpulse::model {

inline constexpr std::array<std::string_view, 11> kMetricGroups{
    "io", "writes", "discards", "devices", "nvme", "nvme_logs", "flash_model", "spikes", "tenants", "web", "self"};

/// By index in kMetricGroups.
using MetricGroups = std::bitset<kMetricGroups.size()>;

inline MetricGroups all_metric_groups() { return MetricGroups{}.set(); }

inline std::optional<std::size_t> metric_group(std::string_view name) {
  const auto* found = std::find(kMetricGroups.begin(), kMetricGroups.end(), name);
  return found == kMetricGroups.end() ? std::nullopt
                                      : std::optional(static_cast<std::size_t>(found - kMetricGroups.begin()));
}

}  // namespace ssdpulse::model
