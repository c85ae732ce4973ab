// SPDX-License-Identifier: Apache-2.0
// ReplicatedDrive: a miniature drive with copies that show how far its write amplification can be trusted.
// Small blocks amplify less than large ones, by about a constant divided by their size, whatever the policy. So the
// sample is also split into halves, each a miniature drive with blocks half as large and the same number of them: the
// halves fall short of the whole by as much as the whole falls short of the drive (a jackknife). Quarters of the sample
// show the scatter that its choice causes.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "daemon/analysis/flash_model/miniature_drive.h"

namespace ssdpulse::analysis {

using model::Estimate;

class ReplicatedDrive {
 public:
  enum class Replicates : std::uint8_t {
    none,      // every page is followed: nothing to correct, and no scatter
    halves,    // the scatter is taken from elsewhere
    quarters,  // halves and quarters
  };
  static constexpr std::size_t kMaxCopies = 7;
  /// Of the whole, its halves, its quarters.
  using Counts = std::array<MiniatureDrive::Counts, kMaxCopies>;

  /// `whole.pages` is a multiple of 4 and its blocks have at least 16 pages, if there are replicates.
  ReplicatedDrive(const MiniatureShape& whole, Replicates replicates, bool mapped);

  void write(std::uint32_t page, std::uint32_t stream);
  void discard(std::uint32_t page);
  void advance(std::uint32_t stream, std::uint64_t drive_pages);

  [[nodiscard]] Replicates replicates() const { return replicates_; }
  [[nodiscard]] Counts counts() const;
  [[nodiscard]] const std::vector<MiniatureDrive>& copies() const { return copies_; }
  static std::size_t memory_bytes(const MiniatureShape& whole, Replicates replicates);

  void save(BinaryWriter& out) const;
  bool restore(BinaryReader& in);

 private:
  /// Which quarter a page belongs to. Structures with a period of four followed pages end up in different quarters,
  /// because a hash rotates the order of the quarters.
  static std::uint32_t quarter_of(std::uint32_t page);

  template <typename Do>
  void in_each(std::uint32_t page, Do act);

  Replicates replicates_;
  std::vector<MiniatureDrive> copies_;
};

/// Write amplification between two moments. `scatter`: the relative standard error, if it is known from another run of
/// the same sample. Absent if the host wrote nothing.
std::optional<Estimate> estimate(const ReplicatedDrive::Counts& from, const ReplicatedDrive::Counts& to,
                                 ReplicatedDrive::Replicates replicates, double scatter = 0);

/// The relative standard error of a run with quarters.
double scatter_of(const ReplicatedDrive::Counts& from, const ReplicatedDrive::Counts& to);

}  // namespace ssdpulse::analysis
