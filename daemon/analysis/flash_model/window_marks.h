// SPDX-License-Identifier: Apache-2.0
// WindowMarks: where the runs of a model stood a day, a week or a drive write ago.
// Keeps up to kMaxMarks moments, closer together the newer they are: a window is off by a few percent.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "daemon/analysis/flash_model/replicated_drive.h"

namespace ssdpulse::analysis {

struct WindowMark {
  std::chrono::nanoseconds at{0};               // monotonic
  std::uint64_t written_pages = 0;              // of the drive; cumulative, like the next
  std::uint64_t sampled_writes = 0;             // of followed pages
  std::vector<ReplicatedDrive::Counts> counts;  // by run
};

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
  void keep_runs(std::size_t most);

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

}  // namespace ssdpulse::analysis
