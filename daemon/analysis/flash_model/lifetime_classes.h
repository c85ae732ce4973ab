// SPDX-License-Identifier: Apache-2.0
// LifetimeClasses: the data that a drive keeps apart if it goes by how long the previous version lived.
// Four classes of equal volume; their limits follow recent lifetimes.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "daemon/analysis/flash_model/lifetimes.h"

namespace ssdpulse::analysis {

class LifetimeClasses {
 public:
  static constexpr std::uint32_t kClasses = 4;

  /// The class, 0 for the shortest lives, of a page whose previous version lived this long, in units of Lifetimes;
  /// absent: unknown, so taken as long.
  std::uint32_t next(std::optional<std::uint32_t> lifetime);

  void save(BinaryWriter& out) const;
  bool restore(BinaryReader& in);

 private:
  static constexpr std::uint64_t kLearnEvery = 4096;  // writes of the sample; what was learned before then counts half

  void learn();

  LifetimeHistogram recent_;
  std::uint64_t unknown_ = 0;
  std::uint64_t seen_ = 0;
  std::array<std::uint32_t, kClasses - 1> limits_{UINT32_MAX, UINT32_MAX, UINT32_MAX};
};

}  // namespace ssdpulse::analysis
