// SPDX-License-Identifier: Apache-2.0
// Which families does one Snapshot hold?
#include "exporters/prometheus/families.h"

#include <chrono>

namespace ssdpulse::exposition {

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
  for (const auto topic : {io_families(), write_families(), discard_families(), device_families(), nvme_families(),
                           nvme_log_families(), spike_families(), web_families(), self_families()}) {
    for (const auto& description : topic) {
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
