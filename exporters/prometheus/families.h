// SPDX-License-Identifier: Apache-2.0
// Topic: the metrics that ssdpulse exports, one table of families for each, and what the tables share. Names, types and
// labels are a contract: changing one is a breaking change.
#pragma once

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <utility>
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

/// An enum's value as a label shows it.
template <typename Enum, std::size_t Size>
std::string label_of(Enum value, const std::array<std::string_view, Size>& names) {
  return std::string(name(value, names));
}

inline Labels with(Labels labels, std::initializer_list<Label> more) {
  labels.insert(labels.end(), more);
  return labels;
}

/// For each device whose requests are seen: visit(device, since). `since`: when its counters began; absent: they are 0,
/// as nothing was measured yet.
template <typename Visit>
void for_each_seen_device(const model::Snapshot& snapshot, Visit visit) {
  for (const model::DeviceSnapshot& device : snapshot.devices) {
    if (!device.unseen) {
      visit(device, device.io ? std::optional(device.io->since) : std::nullopt);
    }
  }
}

/// When counters that belong to no device began: with the daemon. Absent until /proc/self has been read.
std::optional<model::WallTime> daemon_start(const model::Snapshot& snapshot);

inline constexpr auto kTrueOrFalse = std::to_array<std::string_view>({"true", "false"});
inline constexpr auto kReadAndWrite = std::to_array<std::string_view>({"read", "write"});

inline constexpr LabelDescription kDevice{"device", "the disk, as the kernel names it"};
inline constexpr LabelDescription kOperation{"operation", "what the request does", model::kRequestNames};
inline constexpr LabelDescription kController{"controller",
                                              "the NVMe drive: the lowest live controller of its subsystem"};

inline constexpr LabelDescription kDeviceLabels[]{kDevice};
inline constexpr LabelDescription kDeviceOperationLabels[]{kDevice, kOperation};
inline constexpr LabelDescription kControllerLabels[]{kController};

/// A new topic adds its table here and in families.cpp.
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
std::span<const FamilyDescription> volume_families();
std::span<const FamilyDescription> device_families();
std::span<const FamilyDescription> nvme_families();
std::span<const FamilyDescription> nvme_log_families();
std::span<const FamilyDescription> flash_families();
std::span<const FamilyDescription> spike_families();
std::span<const FamilyDescription> tenant_families();
std::span<const FamilyDescription> host_families();
std::span<const FamilyDescription> web_families();
std::span<const FamilyDescription> self_families();

/// Every family of these groups that has a sample in this Snapshot. The result borrows from the Snapshot.
std::vector<Family> collect(const model::Snapshot& snapshot, model::MetricGroups groups = model::all_metric_groups());

// What `ssdpulse metrics` prints about every metric, from the tables that pages are made from.

/// For a terminal.
std::string metric_list_text();

/// {"metrics": [{"name", "topic", "group", "type", "unit", "labels": [{"name", "values", "meaning"}], "help",
/// "absent_when"}]} `values` is null if they are not enumerated, `absent_when` is null if the family is always there.
std::string metric_list_json();

/// The manual page ssdpulse-metrics(7), in mdoc.
std::string metric_list_manual();

}  // namespace ssdpulse::exposition
