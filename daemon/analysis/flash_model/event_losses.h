// SPDX-License-Identifier: Apache-2.0
// EventLosses: the share of the events of the last drive write that was lost.
// The trace of a lost event, a page that wrongly seems to hold data or none, is overwritten within about that time.
#pragma once

#include <array>
#include <cstdint>

#include "daemon/analysis/flash_model/binary_state.h"

namespace ssdpulse::analysis {

class EventLosses {
 public:
  static constexpr double kMaxWrites = 0.03;     // at 10 % a uniform load reads 8.5 % high
  static constexpr double kMaxDiscards = 0.005;  // a lost discard may be a whole file

  explicit EventLosses(std::uint64_t drive_pages) : part_pages_(drive_pages / kParts + 1) {}

  /// Events. Those that were lost are not in `writes` and `discards`.
  struct Events {
    std::uint64_t writes = 0;
    std::uint64_t lost_writes = 0;
    std::uint64_t discards = 0;
    std::uint64_t lost_discards = 0;
  };
  /// Adds what came while the host wrote that many pages of the drive, followed or not.
  void add(const Events& seen, std::uint64_t drive_pages);

  /// Shares, 0 to 1.
  struct Rates {
    double writes;
    double discards;
    [[nodiscard]] bool too_many() const { return writes > kMaxWrites || discards > kMaxDiscards; }
  };
  [[nodiscard]] Rates rates() const;

  void save(BinaryWriter& out) const;
  bool restore(BinaryReader& in);

 private:
  static constexpr std::size_t kParts = 16;  // of a drive write

  std::uint64_t part_pages_;
  std::uint64_t volume_ = 0;  // in the newest part
  std::size_t newest_ = 0;
  std::array<Events, kParts + 1> parts_{};
};

}  // namespace ssdpulse::analysis
