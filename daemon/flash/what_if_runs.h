// SPDX-License-Identifier: Apache-2.0
// WhatIfRun: a hypothetical drive that is modelled on the sample of a drive; WindowMarks: where the runs of a model
// stood at earlier times. Also which what-ifs there are, and what is assumed about a drive of a given size.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <vector>

#include "daemon/flash/flash_fit.h"
#include "daemon/flash/lifetimes.h"
#include "daemon/flash/miniature_drive.h"
#include "daemon/model/flash_values.h"

namespace ssdpulse::flash {

using model::Discards;
using model::Placement;
using model::UnknownPages;
using model::WhatIf;

/// The what-ifs for each drive, the most useful first: the middle policy at the presumed over-provisioning of this
/// drive, the other policies, the start from empty, discards ignored, hints used, and other over-provisioning. If
/// memory is short, the last ones are left out.
std::vector<WhatIf> default_what_ifs(double overprovisioning);

/// Published or usual over-provisioning by the nominal size: 960 GB times a power of two (from 240 GB) keeps
/// 10 to 20 %, 800 GB times a power of two (from 200 GB) is the same flash with 30 to 45 %, all others, most likely
/// client drives, have 7 to 10 %.
BoundedValue usual_overprovisioning(std::uint64_t drive_bytes);

/// Pages per block of a drive with this many followed pages: a power of two that gives 768 to 1,536 blocks, about as
/// many as drives have superblocks. 64 pages at the usual 65,536 followed ones.
std::uint32_t model_block_pages(std::uint64_t pages);

/// One what-if on the sample of one drive: which stream a write belongs to, and what the volume lock counts of each.
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

struct WindowMark {
  std::chrono::nanoseconds at{0};               // monotonic
  std::uint64_t written_pages = 0;              // of the drive; cumulative, like the next
  std::uint64_t sampled_writes = 0;             // of followed pages
  std::vector<ReplicatedDrive::Counts> counts;  // by run
};

/// Where the runs of a model stood a day, a week or a drive write ago. Keeps up to kMaxMarks moments, closer together
/// the newer they are: a window is off by a few percent.
class WindowMarks {
 public:
  static constexpr std::size_t kMaxMarks = 192;

  explicit WindowMarks(std::uint64_t drive_pages) : step_pages_(drive_pages / 64 + 1) {}

  /// Ten minutes, or 1/64 of a drive write, after the newest mark.
  [[nodiscard]] bool due(std::chrono::nanoseconds at, std::uint64_t written_pages) const;
  /// Marks come in the order of time and volume.
  void add(WindowMark mark);
  /// Moves all times by this much.
  void shift(std::chrono::nanoseconds by);
  /// Keeps only the counts of the first runs in each mark.
  void keep_runs(std::size_t max_runs);

  /// The oldest mark of the window; null: none yet. Valid until the marks change.
  [[nodiscard]] const WindowMark* since(std::chrono::nanoseconds at) const;
  [[nodiscard]] const WindowMark* since_volume(std::uint64_t written_pages) const;

  void save(BinaryWriter& out) const;
  bool restore(BinaryReader& in, std::size_t runs);

 private:
  void thin();

  std::uint64_t step_pages_;
  std::vector<WindowMark> marks_;
};

}  // namespace ssdpulse::flash
