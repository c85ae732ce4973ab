// SPDX-License-Identifier: Apache-2.0
// silence_of(), in_words(): why the flash model reports nothing at all for a drive, also in words for people.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "daemon/model/flash.h"

namespace ssdpulse::analysis {

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

/// Absent: nothing that is known about the drive prevents a report.
std::optional<FlashSilence> silence_of(const FlashDriveFacts& facts);

/// As in "modelled write amplification: none, because ...".
std::string in_words(FlashSilence silence);

}  // namespace ssdpulse::analysis
