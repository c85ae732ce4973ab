// SPDX-License-Identifier: Apache-2.0
// hint_order_violations(): pairs of write hints in the wrong order, whose shorter-lived data outlives the other's.
#pragma once

#include <vector>

#include "daemon/analysis/flash_model/lifetimes.h"
#include "daemon/model/flash.h"

namespace ssdpulse::analysis {

inline constexpr double kMinDisorder = 1.5;              // one median over the other
inline constexpr std::uint64_t kMinDistinctPages = 100;  // of a hint: resolution is by pages, not by deaths
inline constexpr std::uint64_t kMinDeaths = 100;
inline constexpr double kMinObserved = 0.25;  // drive writes

/// Medians are in bytes that the host writes to the drive, which has `drive_bytes`. Looks at every followed page.
std::vector<model::HintOrderViolation> hint_order_violations(const Lifetimes& lifetimes, double drive_bytes);

}  // namespace ssdpulse::analysis
