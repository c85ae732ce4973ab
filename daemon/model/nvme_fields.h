// SPDX-License-Identifier: Apache-2.0
// Which fields of NVMe log pages are exported, under which names?
// One entry a metric: decoders (sources/nvme/pages) fill it, exporters render it, neither knows the other.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ssdpulse::model {

/// In the order of kNvmeFieldDescriptions.
enum class NvmeField : std::uint8_t {
  temperature_celsius,
  available_spare_ratio,
};

struct NvmeFieldDescription {
  std::string_view metric;  // whole name; counters end in _total
  std::string_view help;
  std::string_view unit;   // base unit that the name carries, or empty
  std::string_view label;  // name of the one label beside `controller`, or empty
  bool counter;
};

inline constexpr std::array kNvmeFieldDescriptions{
    NvmeFieldDescription{"ssdpulse_nvme_temperature_celsius", "Temperature of the drive.", "celsius", "sensor", false},
    NvmeFieldDescription{"ssdpulse_nvme_available_spare_ratio", "Remaining spare capacity.", "ratio", "", false},
};
inline constexpr std::size_t kNvmeFields = kNvmeFieldDescriptions.size();

/// One value of one field, in base units. Integers beyond 2^53 are rounded to the nearest double here, once.
struct NvmeValue {
  NvmeField field;
  std::string label;  // value of the description's label
  double value;
};

}  // namespace ssdpulse::model
