// SPDX-License-Identifier: Apache-2.0
// The metrics that ssdpulse exports: one list per topic. A new topic adds its list here and in families.cpp.
// Names, types and labels are a contract: changing one is a breaking change.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "daemon/model/metric_groups.h"
#include "exporters/prometheus/family.h"

namespace ssdpulse::exposition {

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

}  // namespace ssdpulse::exposition
