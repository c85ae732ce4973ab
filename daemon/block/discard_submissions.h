// SPDX-License-Identifier: Apache-2.0
// DiscardPrograms, DiscardSubmissionReader: what each kind of submitter sent to each volume (disk or partition, stacked
// ones too), as programs see discards being made. Only DiscardPrograms::open() needs capabilities. Not thread-safe.
#pragma once

#include <linux/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bpf/abi/discard_abi.h"
#include "daemon/base/result.h"
#include "daemon/block/bpf_objects.h"
#include "daemon/block/kernel_btf.h"
#include "daemon/block/kernel_rows.h"
#include "daemon/model/device.h"
#include "daemon/model/discard_values.h"
#include "daemon/model/snapshot.h"

struct discard;

namespace ssdpulse::block {

/// Loads and attaches the programs; afterwards everything is read and written through mappings.
class DiscardPrograms {
 public:
  /// Takes the best hook that this kernel allows; one that every bio passes through only if `may_hook_every_bio`.
  static util::Result<std::unique_ptr<DiscardPrograms>> open(const KernelBtf& btf, std::uint32_t rows,
                                                             bool may_hook_every_bio);
  ~DiscardPrograms();
  DiscardPrograms(const DiscardPrograms&) = delete;
  DiscardPrograms& operator=(const DiscardPrograms&) = delete;

  /// [row][submitter]
  [[nodiscard]] std::span<const discard_cell> cells() const { return cells_; }
  /// As in device_rows.h: which volume has which row; empty until it is written.
  [[nodiscard]] std::span<__u64> volumes() const { return volumes_; }
  /// Whether a partition's discards are distinguished from those of its disk.
  [[nodiscard]] bool sees_partitions() const { return sees_partitions_; }
  [[nodiscard]] model::KernelDecision decision() const { return decision_; }
  /// Why better hooks were refused; empty: it is the best.
  [[nodiscard]] const std::string& refusals() const { return refusals_; }
  [[nodiscard]] std::vector<model::ProgramStats> program_stats() const;
  /// For good, like BlockPrograms::detach().
  void detach();

 private:
  DiscardPrograms() = default;
  util::Result<void> hook(const KernelBtf& btf, DiscardHook hook, std::uint32_t rows);

  std::unique_ptr<discard, SkeletonDeleter<discard>> skeleton_;
  TableMappings mappings_;
  std::span<const discard_cell> cells_;
  std::span<__u64> volumes_;
  model::KernelDecision decision_ = model::KernelDecision::not_hooked;
  std::string refusals_;
  bool sees_partitions_ = false;
  bool kernel_counts_skipped_runs_ = false;
};

/// Rows for measured disks, stacked ones and their partitions, plus spare ones for new volumes; any beyond that are
/// not counted by submitter.
std::uint32_t discard_rows(const model::Inventory& inventory);

/// Gives volumes their rows in the kernel's table of discards and reads it, without system calls.
class DiscardSubmissionReader {
 public:
  /// `cells` [row][submitter], `volumes` as in device_rows.h: the mapped kernel tables. Without `sees_partitions`,
  /// nothing is known about partitions, and everything counts for their disk.
  DiscardSubmissionReader(std::span<const discard_cell> cells, std::span<__u64> volumes, bool sees_partitions);

  void update(const model::Inventory& inventory);
  /// Cumulative since the volume got its row, by volume name. Volumes without a row are absent.
  [[nodiscard]] std::map<std::string, model::DiscardSubmitters> read() const;

 private:
  [[nodiscard]] model::DiscardSubmitters read_cells(std::uint32_t row) const;

  std::span<const discard_cell> cells_;
  bool sees_partitions_;
  DeviceRows rows_;
  std::map<std::string, model::DiscardSubmitters> baselines_;  // of rows, by volume
};

}  // namespace ssdpulse::block
