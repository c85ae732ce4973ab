// SPDX-License-Identifier: Apache-2.0
// Sampler: joins inventory, block source and accounting into one immutable Snapshot per tick. Owned by one thread.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "daemon/analysis/accounting_drift.h"
#include "daemon/analysis/missed_completions.h"
#include "daemon/model/snapshot.h"
#include "daemon/runtime/block_layer.h"
#include "daemon/runtime/discard_watch.h"
#include "daemon/sources/block/block_source.h"
#include "daemon/sources/inventory/disk_stats.h"
#include "daemon/sources/inventory/inventory.h"
#include "daemon/util/log.h"
#include "daemon/util/result.h"

namespace ssdpulse::runtime {

class Sampler final : public BlockLayer {
 public:
  /// Looks at the host and starts counting: needs the capabilities to load BPF programs, later calls need none.
  static util::Result<std::unique_ptr<Sampler>> open(const sources::InventoryRoots& roots,
                                                     const sources::DeviceFilter& filter,
                                                     const block::BlockChoices& choices);

  /// Disks or mounts changed, or may have.
  void refresh_inventory();
  void set_filter(const sources::DeviceFilter& filter);
  void set_discard_gap(std::chrono::nanoseconds gap) { discards_.set_gap(gap); }

  /// To be completed by other sources and published.
  std::shared_ptr<model::Snapshot> sample(std::uint64_t missed_ticks);

  /// Adds where hints end, once the drives are in the snapshot, and takes over what these prefer.
  void consult_drives(model::Snapshot& snapshot);

  std::shared_ptr<const model::DeviceIo> device(const std::string& name) override;
  [[nodiscard]] std::optional<std::uint64_t> largest_request_bytes(const std::string& name) const override;
  [[nodiscard]] std::uint64_t skipped_runs() const override;

  /// Disks sent I/O at the last sample that the inventory did not know: it is out of date.
  [[nodiscard]] bool saw_unknown_disks() const { return saw_unknown_disks_; }

  [[nodiscard]] std::size_t measured_devices() const { return source_->measured_devices(); }
  [[nodiscard]] const model::Inventory& inventory() const { return inventory_; }

 private:
  /// The kernel's own account of one device, and the comparison with ours.
  struct Witness {
    std::vector<sources::DiskStatsFile> files;
    std::vector<model::Path> paths;
    analysis::AccountingDrift drift;
    analysis::MissedCompletions missed;
  };
  Sampler() = default;
  void adopt(model::Inventory inventory);
  void compare_with_kernel(const block::DeviceSample& sample);
  void look_for_missed(block::DeviceSample& sample, model::DeviceSnapshot& entry);

  sources::InventoryRoots roots_;
  sources::DeviceFilter filter_;
  bool completion_only_ = false;
  model::Inventory inventory_;
  std::unique_ptr<block::BlockSource> source_;
  std::map<std::string, Witness> witnesses_;  // by device
  DiscardWatch discards_;
  model::SourceStatus inventory_status_;
  double process_start_ = 0;
  std::uint64_t number_ = 0;
  std::uint64_t pending_ios_ = 0;
  bool saw_unknown_disks_ = false;
  log::Limiter limiter_{std::chrono::minutes(1)};
};

}  // namespace ssdpulse::runtime
