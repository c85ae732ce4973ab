// SPDX-License-Identifier: Apache-2.0
// The labels that families of several topics share: their names, their values, and what `ssdpulse metrics` prints about
// them.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "daemon/model/block_io.h"
#include "daemon/model/metric_groups.h"
#include "exporters/prometheus/metric_family.h"

namespace ssdpulse::exposition {

/// The values of several arrays, in one.
template <std::size_t... Sizes>
constexpr auto join(const std::array<std::string_view, Sizes>&... parts) {
  std::array<std::string_view, (Sizes + ...)> all{};
  auto end = all.begin();
  ((end = std::copy(parts.begin(), parts.end(), end)), ...);
  return all;
}

inline constexpr auto kTrueOrFalse = std::to_array<std::string_view>({"true", "false"});
inline constexpr auto kReadAndWrite = std::to_array<std::string_view>({"read", "write"});

inline constexpr LabelDescription kDevice{"device", "the disk, as the kernel names it"};
inline constexpr LabelDescription kOperation{"operation", "what the request does", model::kRequestNames};
inline constexpr LabelDescription kController{"controller",
                                              "the NVMe drive: the lowest live controller of its subsystem"};

inline constexpr LabelDescription kDeviceLabels[]{kDevice};
inline constexpr LabelDescription kDeviceOperationLabels[]{kDevice, kOperation};
inline constexpr LabelDescription kControllerLabels[]{kController};

// The metrics that ssdpulse exports: one list per topic. A new topic adds its list here and in families.cpp.
// Names, types and labels are a contract: changing one is a breaking change.

struct Topic {
  std::string_view group;  // of model::kMetricGroups, in the same order
  std::string_view title;
  std::span<const FamilyDescription> (*families)();
  bool measured;  // by the programs in the kernel: gone if those are detached
};

/// Every family, by topic, in the order of the page.
std::span<const Topic> topics();

std::span<const FamilyDescription> io_families();
std::span<const FamilyDescription> write_families();
std::span<const FamilyDescription> discard_families();
std::span<const FamilyDescription> device_families();
std::span<const FamilyDescription> nvme_families();
std::span<const FamilyDescription> nvme_log_families();
std::span<const FamilyDescription> flash_families();
std::span<const FamilyDescription> spike_families();
std::span<const FamilyDescription> tenant_families();
std::span<const FamilyDescription> host_families();
std::span<const FamilyDescription> web_families();
std::span<const FamilyDescription> self_families();

/// When counters that belong to no device began: with the daemon. Absent until /proc/self has been read.
std::optional<model::WallTime> daemon_start(const model::Snapshot& snapshot);

/// Every family of these groups that has a sample in this Snapshot. The result borrows from the Snapshot.
std::vector<Family> collect(const model::Snapshot& snapshot, model::MetricGroups groups = model::all_metric_groups());

// The list of every metric that ssdpulse exports, for people and programs: what `ssdpulse metrics` prints.
// Comes from the tables that pages are made from, so it cannot disagree with them.

/// For a terminal.
std::string metric_list_text();

/// {"metrics": [{"name", "topic", "group", "type", "unit", "labels": [{"name", "values", "meaning"}], "help",
/// "absent_when"}]} `values` is null if they are not enumerated, `absent_when` is null if the family is always there.
std::string metric_list_json();

/// The manual page ssdpulse-metrics(7), in mdoc.
std::string metric_list_manual();

}  // namespace ssdpulse::exposition
