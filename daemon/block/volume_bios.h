// SPDX-License-Identifier: Apache-2.0
// VolumePrograms, VolumeReader: what the bios of volumes did, and those of the disks and partitions directly below
// them. Only VolumePrograms::open() needs capabilities. Not thread-safe.
#pragma once

#include <linux/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "daemon/base/result.h"
#include "daemon/block/bpf_objects.h"
#include "daemon/block/kernel_btf.h"
#include "daemon/block/kernel_memory.h"
#include "daemon/block/kernel_rows.h"
#include "daemon/model/device.h"
#include "daemon/model/snapshot.h"
#include "daemon/model/volume_io.h"

struct volume;

namespace ssdpulse::block {

/// Devices that are to have a row: volumes, and what lies directly below them; 0 if there is no volume.
std::uint32_t volume_rows(const model::Inventory& inventory);

/// Loads and attaches the programs; afterwards everything is read and written through mappings.
class VolumePrograms {
 public:
  /// `end_chain`: as in CommonFunctions.
  static util::Result<std::unique_ptr<VolumePrograms>> open(const KernelBtf& btf, const VolumePlan& plan,
                                                            std::uint32_t end_chain);
  ~VolumePrograms();
  VolumePrograms(const VolumePrograms&) = delete;
  VolumePrograms& operator=(const VolumePrograms&) = delete;

  /// [row][cell]
  [[nodiscard]] std::span<const volume_cell> cells() const { return cells_; }
  /// As in device_rows.h; empty until it is written.
  [[nodiscard]] std::span<__u64> devices() const { return devices_; }
  [[nodiscard]] std::vector<model::ProgramStats> program_stats() const;
  /// For good, like BlockPrograms::detach().
  void detach();

 private:
  VolumePrograms() = default;
  util::Result<void> load(const KernelBtf& btf, const VolumePlan& plan, std::uint32_t end_chain, bool has_slots);

  std::unique_ptr<volume, SkeletonDeleter<volume>> skeleton_;
  TableMappings mappings_;
  std::span<const volume_cell> cells_;
  std::span<__u64> devices_;
  bool kernel_counts_skipped_runs_ = false;
};

/// Gives volumes and their members rows in the kernel's tables and reads them, without system calls.
class VolumeReader {
 public:
  /// `cells` [row][cell] and `devices` as in device_rows.h: the mapped kernel tables. `sees_partitions`: the bios of a
  /// partition are distinguished from those of its disk.
  VolumeReader(std::span<const volume_cell> cells, std::span<__u64> devices, const VolumePlan& plan,
               bool sees_partitions);

  void update(const model::Inventory& inventory);
  /// While paused, nothing has a row, and the programs in the kernel do next to nothing. Then all counts begin again.
  void pause(bool paused);
  /// Sorted by device. What has not changed since the last call is the same object.
  [[nodiscard]] const std::vector<std::shared_ptr<const model::BioIo>>& read();
  /// Volumes that have no row. Sorted.
  [[nodiscard]] const std::vector<std::string>& left_out() const { return left_out_; }

 private:
  struct Row {
    std::uint32_t number;
    model::BioIo baseline;
    std::uint64_t stamp = 0;  // of what is published; see stamp_of()
    std::shared_ptr<const model::BioIo> published;
  };
  void give_rows();
  [[nodiscard]] std::span<const volume_cell> cells_of(std::uint32_t row) const;
  [[nodiscard]] model::BioIo read_row(std::uint32_t row) const;

  std::span<const volume_cell> cells_;
  VolumePlan plan_;
  bool sees_partitions_;
  DeviceRows numbers_;
  std::vector<DeviceRows::Wanted> wanted_;
  std::set<std::string> volumes_;
  std::map<std::string, std::uint64_t> incarnations_;  // of volumes, as far as they are known
  bool paused_ = false;
  std::map<std::string, Row> rows_;
  std::vector<std::string> left_out_;
  std::vector<std::shared_ptr<const model::BioIo>> published_;
};

}  // namespace ssdpulse::block
