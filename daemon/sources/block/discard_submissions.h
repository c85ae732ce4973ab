// SPDX-License-Identifier: Apache-2.0
// What each kind of submitter sent to each volume (disk or partition, stacked ones too).
// Gives volumes their rows in the kernel's table of discards and reads it. Not thread-safe; reading makes no system
// call.
#pragma once

#include <linux/types.h>

#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <string>

#include "bpf/abi/discard_abi.h"
#include "daemon/model/device.h"
#include "daemon/model/discards.h"

namespace ssdpulse::block {

/// Rows for measured disks, stacked ones and their partitions, plus spare ones for new volumes; any beyond that are
/// not counted by submitter.
std::uint32_t discard_rows(const model::Inventory& inventory);

class DiscardSubmissionReader {
 public:
  /// `cells` [row][submitter], `volumes` as in discard_abi.h: the mapped kernel tables. Without `sees_partitions`,
  /// nothing is known about partitions, and everything counts for their disk.
  DiscardSubmissionReader(std::span<const discard_cell> cells, std::span<__u64> volumes, bool sees_partitions);

  void update(const model::Inventory& inventory);
  /// Cumulative since the volume got its row, by volume name. Volumes without a row are absent.
  [[nodiscard]] std::map<std::string, model::DiscardSubmitters> read() const;

 private:
  struct VolumeRow {
    std::uint32_t number;
    model::DiscardSubmitters baseline;
  };
  [[nodiscard]] model::DiscardSubmitters read_cells(std::uint32_t row) const;

  std::span<const discard_cell> cells_;
  std::span<__u64> volumes_;
  bool sees_partitions_;
  std::map<std::string, VolumeRow> rows_;  // by volume
  std::deque<std::uint32_t> free_;         // longest free first
};

}  // namespace ssdpulse::block
