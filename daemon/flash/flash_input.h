// SPDX-License-Identifier: Apache-2.0
// FlashInput: what one tick brings to the flash models: the drives that are there, what is known about each besides its
// events, and the events. Values only: they are passed to the models' thread.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/model/flash_values.h"
#include "daemon/model/stage.h"

namespace ssdpulse::flash {

using model::FlashSilence;

/// What is known about a drive besides its events.
struct FlashDriveFacts {
  std::uint64_t size_bytes = 0;
  bool rotational = false;
  bool zoned = false;
  bool virtual_device = false;         // or it may be one
  bool wanted_though_virtual = false;  // by the configuration
  bool compresses = false;
  bool partly_measured = false;  // a namespace or path that we do not see
  double written_elsewhere = 0;  // share of the drive's own host counter that no block device wrote
};

/// Passthrough and other hosts may write this share before the model is off by as much.
inline constexpr double kMaxWrittenElsewhere = 0.02;

/// Why the flash model reports nothing at all for a drive; absent: nothing that is known about it prevents a report.
std::optional<FlashSilence> silence_of(const FlashDriveFacts& facts);

/// For people, as in "modelled write amplification: none, because ...".
std::string silence_text(FlashSilence silence);

struct FlashNamespace {
  std::string device;
  std::uint64_t size_bytes = 0;
  std::string made_as = {};  // differs if it was created again, or formatted with another block size
  bool operator==(const FlashNamespace&) const = default;
};

struct FlashDrive {
  std::string key;                            // the same for as long as it is the same drive, across boots if possible
  bool has_lasting_key = true;                // false: it could not be recognized again, so no state of it is kept
  std::string controller;                     // empty: not an NVMe drive
  std::vector<FlashNamespace> namespaces;     // or the one disk; sorted by device
  std::uint64_t page_bytes = 4096;            // that it maps: a power of two
  bool settled = true;                        // false: the above may change, because the drive has not answered yet
  FlashDriveFacts facts;                      // except those that the configuration and the models add
  std::optional<double> host_written_bytes;   // by the drive's own counter
  std::optional<double> media_written_bytes;  // the same, for the media
  double host_doubt_bytes = 0;                // how far off a difference of the counters may be
  double media_doubt_bytes = 0;
  std::optional<double> written_elsewhere_bytes;  // of host_written_bytes, at least, since the daemon started
  std::optional<model::Estimate> measured_day;    // write amplification of the last 24 hours, by its counters
  std::optional<double> used_share;               // of the drive, 0 to 1, as it reported at its last Identify

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
  std::shared_ptr<const Sampling> sampling;            // the one in force when they were taken; null: none
  EventsByDevice overflowed;                           // of earlier ticks, for which the queue had no room
};

/// The drives of a tick, sorted by name.
std::vector<FlashDrive> drives_of(const model::Tick& tick);

}  // namespace ssdpulse::flash
