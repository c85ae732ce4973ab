// SPDX-License-Identifier: Apache-2.0
// One what-if on the sample of one drive: which stream a write belongs to, and what the volume lock sees of each.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "daemon/analysis/flash_model/lifetime_classes.h"
#include "daemon/analysis/flash_model/replicated_drive.h"
#include "daemon/analysis/flash_model/what_if.h"

namespace ssdpulse::analysis {

class WhatIfRun {
 public:
  /// `pages` followed pages, each standing for `scale` pages of the drive.
  WhatIfRun(const WhatIf& what, std::uint32_t pages, std::uint32_t scale, ReplicatedDrive::Replicates replicates,
            bool mapped);

  /// The host wrote `drive_pages` pages of the whole drive with this hint; call before write() for those of the sample.
  void advance(std::uint8_t hint, std::uint64_t drive_pages);
  /// A page of the sample. `lifetime_class`: that of the version that ends here.
  void write(std::uint32_t page, std::uint8_t hint, std::uint32_t lifetime_class);
  void discard(std::uint32_t page);
  /// The page holds nothing, however the drive treats discards: it was formatted.
  void forget(std::uint32_t page) { drive_.discard(page); }

  [[nodiscard]] const WhatIf& what() const { return what_; }
  [[nodiscard]] const ReplicatedDrive& drive() const { return drive_; }
  static MiniatureShape shape(const WhatIf& what, std::uint32_t pages, std::uint32_t scale);

  void save(BinaryWriter& out) const;
  bool restore(BinaryReader& in);

 private:
  [[nodiscard]] std::uint32_t stream_of(std::uint8_t hint) const;

  WhatIf what_;
  ReplicatedDrive drive_;
  // Pages of the drive that were not passed to its copies yet: less than one of the sample. By stream; for lifetimes,
  // by which pages are not counted, in the first: what was written since the last write is assumed to be alike.
  std::array<std::uint64_t, MiniatureDrive::kMaxStreams> pending_pages_{};
};

/// The stream of a hint (model::WriteHint): hints that say nothing share one.
std::uint32_t stream_of_hint(std::uint8_t hint);

}  // namespace ssdpulse::analysis
