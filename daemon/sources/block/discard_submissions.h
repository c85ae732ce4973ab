// SPDX-License-Identifier: Apache-2.0
// What did each kind of submitter send to each disk, stacked ones too?
// Gives disks their places in the kernel's table of discards and reads it. Not thread-safe; reading makes no system
// call.
#pragma once

#include <linux/types.h>

#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "bpf/abi/discard_abi.h"
#include "daemon/model/device.h"
#include "daemon/model/discards.h"

namespace ssdpulse::block {

/// Measured disks and stacked ones, plus places for new ones; more are not told by submitter.
std::uint32_t discard_places(const model::Inventory& inventory);

class DiscardSubmissionReader {
 public:
  /// [place][submitter]
  explicit DiscardSubmissionReader(std::span<const discard_cell> cells);

  void update(const model::Inventory& inventory);
  /// Place + 1, or 0.
  [[nodiscard]] std::uint32_t place_of(const std::string& disk) const;
  /// Cumulative since the disk got its place; by the disk's name.
  [[nodiscard]] std::map<std::string, model::DiscardSubmitters> read() const;

 private:
  struct Place {
    std::uint32_t number;
    model::DiscardSubmitters baseline;
  };
  [[nodiscard]] model::DiscardSubmitters read_cells(std::uint32_t place) const;

  std::span<const discard_cell> cells_;
  std::map<std::string, Place> places_;  // by disk
  std::deque<std::uint32_t> free_;       // longest free first
};

}  // namespace ssdpulse::block
