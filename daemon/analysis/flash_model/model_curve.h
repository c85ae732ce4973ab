// SPDX-License-Identifier: Apache-2.0
// Functions that read from a report the write amplification of a drive with another over-provisioning, or of one whose
// policy is unknown.
#pragma once

#include <optional>
#include <vector>

#include "daemon/analysis/flash_model/overprovisioning_fit.h"
#include "daemon/model/flash.h"

namespace ssdpulse::analysis {

/// The policy that is modelled with several over-provisionings, and that the first what-if has.
inline constexpr model::CollectionPolicy kMiddlePolicy = model::CollectionPolicy::greedy_gc_frontier;

/// Sorted by over-provisioning: the runs of a window that differ in nothing else. Empty if the window is silent.
std::vector<CurvePoint> curve_of(const model::FlashReport& report, model::FlashWindow window);

/// The estimate for a drive with this over-provisioning and its bounds.
std::optional<model::Estimate> at_overprovisioning(std::span<const CurvePoint> curve,
                                                   const BoundedValue& overprovisioning);

/// The base, with bounds that hold for each policy that was modelled at its over-provisioning.
std::optional<model::Estimate> band_of_policies(const model::FlashReport& report, model::FlashWindow window);

}  // namespace ssdpulse::analysis
