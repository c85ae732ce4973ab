// SPDX-License-Identifier: Apache-2.0
// The labels that families of several topics share: their names, their values, and what `ssdpulse metrics` prints about
// them.
#pragma once

#include <algorithm>
#include <array>
#include <span>

#include "daemon/model/operation.h"
#include "exporters/prometheus/family.h"

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

}  // namespace ssdpulse::exposition
