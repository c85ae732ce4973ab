// SPDX-License-Identifier: Apache-2.0
// What does one tick bring to the flash models? The drives that are there, what is known of each besides its events,
// and the events. Values only: they cross to the models' thread.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/analysis/flash_model/silence.h"
#include "daemon/model/flash_estimate.h"
#include "daemon/model/flash_samples.h"
#include "daemon/stages/tick.h"

namespace ssdpulse::flash {

struct FlashNamespace {
  std::string device;
  std::uint64_t size_bytes = 0;
  std::string made_as = {};  // another one where it was made anew, or formatted to blocks of another size
  bool operator==(const FlashNamespace&) const = default;
};

struct FlashDrive {
  std::string key;                           // the same for as long as it is the same drive, over boots where it can be
  bool has_lasting_key = true;               // false: nobody would know it again, so no state of it is kept
  std::string controller;                    // empty: no NVMe drive
  std::vector<FlashNamespace> namespaces;    // or the one disk; sorted by device
  std::uint64_t page_bytes = 4096;           // that it maps: a power of two
  bool settled = true;                       // nothing above will change because the drive has not answered yet
  analysis::FlashDriveFacts facts;           // but what the configuration and the models say
  std::optional<double> host_written_bytes;  // by the drive's own counter
  std::optional<double> media_written_bytes;  // the same, of the media
  double host_doubt_bytes = 0;                // a difference of the counters may be off by
  double media_doubt_bytes = 0;
  std::optional<double> written_elsewhere_bytes;  // of them, at least, since the daemon's start
  std::optional<model::Estimate> measured_day;    // write amplification of the last 24 hours, by its counters
  std::optional<double> used_share;               // of the drive, by its own word at its last Identify

  [[nodiscard]] const std::string& name() const {
    return controller.empty() && !namespaces.empty() ? namespaces.front().device : controller;
  }
};

/// By disk.
using Sampling = std::map<std::string, model::SamplingParameters>;

using EventsByDevice = std::map<std::string, std::array<std::uint64_t, model::kFlashEventKinds>>;

struct FlashInput {
  std::chrono::nanoseconds at{0};  // monotonic
  model::WallTime wall;
  std::vector<FlashDrive> drives;                      // sorted by name
  std::shared_ptr<const model::FlashSamples> samples;  // null: none
  std::shared_ptr<const Sampling> sampling;            // that was in force when they were taken; null: none
  EventsByDevice overflowed;                           // of ticks before, for which the queue had no room
};

/// The drives of a tick, sorted by name.
std::vector<FlashDrive> drives_of(const stages::Tick& tick);

}  // namespace ssdpulse::flash
