// SPDX-License-Identifier: Apache-2.0
// OfflineModel: what a drive relocates under a recorded load. Runs the model on a log instead of live events.
// Memory depends on the sample and the number of what-ifs, not on the length of the log.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "daemon/flash/flash_events.h"
#include "daemon/flash/what_if_runs.h"

namespace ssdpulse::flash {

struct OfflineSettings {
  std::uint64_t size_bytes = 0;
  std::uint64_t page_bytes = 4096;                 // what the drive maps
  std::optional<std::uint64_t> sample_pages = {};  // about this many are followed; absent: all
  bool starts_full = true;                         // in the order of addresses; otherwise empty
  std::uint32_t seed = 1;
  std::vector<WhatIf> what_ifs;
};

class OfflineModel {
 public:
  /// The fewest followed pages: with fewer, the blocks of the halves are too small.
  static constexpr std::uint64_t kMinSample = 16384;

  explicit OfflineModel(const OfflineSettings& settings);

  /// Ranges that end beyond the drive are cut off at its end.
  void write(std::uint64_t offset, std::uint64_t bytes, std::uint8_t hint);
  void discard(std::uint64_t offset, std::uint64_t bytes);

  struct Window {
    double from = 0.5;  // shares of all that was written
    double to = 1;
  };
  /// By what-if; absent if nothing was written in the window. The window's ends are off by at most 1/1000 of the log.
  [[nodiscard]] std::vector<std::optional<Estimate>> estimates(Window window) const;

  [[nodiscard]] std::uint64_t written_pages() const { return written_; }
  [[nodiscard]] const PageSample& sample() const { return sample_; }
  [[nodiscard]] std::uint64_t drive_pages() const { return drive_pages_; }
  [[nodiscard]] const std::vector<WhatIfRun>& runs() const { return runs_; }
  static std::size_t memory_bytes(const OfflineSettings& settings);

 private:
  static constexpr std::size_t kMaxMarks = 4096;

  struct Mark {
    std::uint64_t written;
    std::vector<ReplicatedDrive::Counts> counts;  // by run
  };
  [[nodiscard]] Mark mark() const;
  void keep_mark();

  std::uint64_t page_bytes_;
  std::uint64_t drive_pages_;
  PageSample sample_;
  std::optional<Lifetimes> lifetimes_;  // if a what-if places data by them
  LifetimeClasses classes_;
  std::vector<WhatIfRun> runs_;
  std::uint64_t written_ = 0;
  std::uint64_t next_mark_ = 0;
  std::uint64_t mark_every_ = 1;  // pages; doubled whenever there are too many marks
  std::vector<Mark> marks_;
};

}  // namespace ssdpulse::flash
