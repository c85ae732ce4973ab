// SPDX-License-Identifier: Apache-2.0
#include "daemon/analysis/flash_model/what_if.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace ssdpulse::analysis {
namespace {

/// 960 GB, 1.92 TB, 3.84 TB ... are `base` times a power of two, to a hundredth.
bool doubles_of(std::uint64_t base, std::uint64_t bytes) {
  const double octaves = std::log2(static_cast<double>(bytes) / static_cast<double>(base));
  return octaves > -2.5 && std::abs(octaves - std::round(octaves)) < 0.015;
}

}  // namespace

std::vector<WhatIf> default_what_ifs(double overprovisioning) {
  const WhatIf base{overprovisioning};
  std::vector<WhatIf> result(6, base);
  result[1].policy = model::CollectionPolicy::greedy;
  result[2].policy = model::CollectionPolicy::cost_benefit;
  result[3].unknown = UnknownPages::empty;
  result[4].discards = Discards::ignored;
  result[5].placement = Placement::hints;
  for (const double other : {0.28, 0.07, 0.50, 0.12}) {
    if (std::abs(other - overprovisioning) > 0.005) {
      result.push_back({other});
    }
  }
  return result;
}

UsualOverprovisioning usual_overprovisioning(std::uint64_t drive_bytes) {
  constexpr std::uint64_t kReadIntensive = 960'000'000'000;
  constexpr std::uint64_t kMixedUse = 800'000'000'000;
  if (drive_bytes > 0 && doubles_of(kReadIntensive, drive_bytes)) {
    return {0.15, 0.10, 0.20};
  }
  if (drive_bytes > 0 && doubles_of(kMixedUse, drive_bytes)) {
    return {0.37, 0.30, 0.45};
  }
  return {0.085, 0.07, 0.10};
}

std::uint32_t model_block_pages(std::uint64_t pages) {
  constexpr std::uint64_t kMinBlocks = 768;
  constexpr std::uint64_t kMinPages = 4;
  constexpr std::uint64_t kMaxPages = std::uint64_t{1} << 20;
  return static_cast<std::uint32_t>(
      std::clamp(std::bit_floor(std::max<std::uint64_t>(pages / kMinBlocks, 1)), kMinPages, kMaxPages));
}

}  // namespace ssdpulse::analysis
