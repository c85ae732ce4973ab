// SPDX-License-Identifier: Apache-2.0
#include "exporters/prometheus/families.h"

#include <chrono>

namespace ssdpulse::exposition {

std::span<const Topic> topics() {
  static constexpr Topic kTopics[] = {
      {"I/O of each device", io_families},
      {"Writes: hints, classes, alignment", write_families},
      {"Discards", discard_families},
      {"Devices and file systems", device_families},
      {"NVMe drives: wear and polling", nvme_families},
      {"NVMe drives: fields of their log pages", nvme_log_families},
      {"Write amplification, modelled", flash_families},
      {"Latency spikes", spike_families},
      {"Tenants and paths", tenant_families},
      {"The web server", web_families},
      {"The daemon itself", self_families},
  };
  return kTopics;
}

std::optional<model::WallTime> daemon_start(const model::Snapshot& snapshot) {
  if (snapshot.process.start_time_seconds <= 0) {
    return std::nullopt;
  }
  const std::chrono::duration<double> since_epoch(snapshot.process.start_time_seconds);
  // A double of today holds whole microseconds exactly, not nanoseconds.
  return model::WallTime(std::chrono::round<std::chrono::microseconds>(since_epoch));
}

std::vector<Family> collect(const model::Snapshot& snapshot) {
  const bool completion_only = snapshot.latency_mode == "completion-only";
  std::vector<Family> families;
  for (const Topic& topic : topics()) {
    for (const auto& description : topic.families()) {
      if (completion_only && description.modes == Modes::full_only) {
        continue;
      }
      Samples samples;
      description.collect(snapshot, samples);
      Family family{&description, samples.take()};
      if (!family.samples.empty()) {
        families.push_back(std::move(family));
      }
    }
  }
  return families;
}

}  // namespace ssdpulse::exposition
