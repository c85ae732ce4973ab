// SPDX-License-Identifier: Apache-2.0
#include "exporters/prometheus/families.h"

#include <chrono>
#include <iterator>

#include "exporters/prometheus/fleet_profile.h"

namespace ssdpulse::exposition {

std::span<const Topic> topics() {
  static constexpr Topic kTopics[] = {
      {"io", "I/O of each device", io_families, true},
      {"writes", "Writes: hints, classes, alignment", write_families, true},
      {"discards", "Discards", discard_families, true},
      {"devices", "Devices and file systems", device_families, false},
      {"nvme", "NVMe drives: wear and polling", nvme_families, false},
      {"nvme_logs", "NVMe drives: fields of their log pages", nvme_log_families, false},
      {"flash_model", "Write amplification, modelled", flash_families, true},
      {"spikes", "Latency spikes", spike_families, true},
      {"tenants", "Tenants and paths", tenant_families, true},
      {"host", "Above the drives: pressure, limits, room", host_families, false},
      {"web", "The web server", web_families, false},
      {"self", "The daemon itself", self_families, false},
  };
  static_assert(std::size(kTopics) == model::kMetricGroups.size());
  return kTopics;
}

std::optional<model::WallTime> daemon_start(const model::Snapshot& snapshot) {
  if (snapshot.process.start_time_seconds <= 0) {
    return std::nullopt;
  }
  const std::chrono::duration<double> since_epoch(snapshot.process.start_time_seconds);
  // A double holds a time of today exactly to the microsecond, not to the nanosecond.
  return model::WallTime(std::chrono::round<std::chrono::microseconds>(since_epoch));
}

std::vector<Family> collect(const model::Snapshot& snapshot, model::MetricGroups groups) {
  const bool completion_only = snapshot.latency_mode == "completion-only";
  const bool detached = snapshot.own_cost.effort == model::Effort::nothing;
  std::vector<Family> families;
  for (std::size_t group = 0; group < topics().size(); ++group) {
    const bool whole = groups.test(group);
    if ((!whole && !groups.test(model::kFleetGroup)) || (detached && topics()[group].measured)) {
      continue;
    }
    for (const auto& description : topics()[group].families()) {
      if (completion_only && description.modes == Modes::full_only) {
        continue;
      }
      Samples samples;
      description.collect(snapshot, samples);
      Family family{&description, samples.take(description.type)};
      if (!whole) {
        reduce_to_fleet(description, topics()[group].group == "self", family.samples);
      }
      if (!family.samples.empty()) {
        families.push_back(std::move(family));
      }
    }
  }
  return families;
}

}  // namespace ssdpulse::exposition
