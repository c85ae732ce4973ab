// SPDX-License-Identifier: Apache-2.0
// BlockSource: what the block layer did on each device. Gives every measured disk a row in the kernel's tables and
// turns the cells into the model's cumulative values. Owned by one thread. Only open() needs capabilities; sample()
// makes no system call at all.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "daemon/block/block_programs.h"
#include "daemon/block/discard_submissions.h"
#include "daemon/block/end_functions.h"
#include "daemon/block/freezes.h"
#include "daemon/block/kernel_memory.h"
#include "daemon/block/measured_device.h"
#include "daemon/block/program_control.h"
#include "daemon/block/volume_bios.h"
#include "daemon/model/device.h"
#include "daemon/model/kernel_programs.h"
#include "daemon/model/snapshot.h"
#include "daemon/model/source_samples.h"

namespace ssdpulse::block {

using model::BlockSample;
using model::DeviceSample;
using model::WritePreference;

/// Choices made before the programs are loaded, other than by the kernel.
struct BlockChoices {
  bool completion_only = false;
  std::optional<bool> hints_of_pages;     // absent: only where this kernel loses hints on the way
  bool attribution = true;                // count reads, writes and discards by cgroup and by path into the kernel
  std::uint32_t attributed_cgroups = 64;  // for which there is room; any others count as `other`
  bool volumes = true;                    // time the bios of volumes, where there are any at the start
  bool flash_samples = true;              // if false, set_sampling() is never called, and no memory is used for it
};

class BlockSource {
 public:
  /// Loads and attaches the programs, sized for the measured disks of the inventory; counting begins here.
  static util::Result<std::unique_ptr<BlockSource>> open(const model::Inventory& inventory,
                                                         const BlockChoices& choices);
  /// On tables in which something else counts, without a kernel: for tests.
  static std::unique_ptr<BlockSource> on(const Tables& tables, const MemoryPlan& plan);

  /// To be called when disks appeared, disappeared or changed their coverage. Cheap when none did.
  void update(const model::Inventory& inventory);

  /// What the drives themselves prefer, by device; until that is known, what the kernel reports is used.
  void set_write_preferences(std::map<std::string, WritePreference> preferences);

  /// Which devices are sampled for the flash model, and how; no others are. Takes effect at the next sample or, if
  /// other parameters were in effect, at the one after that. A device that disappeared and came back, or a path of
  /// which had no row for a while, is sampled from the start again. Devices that are not measured may be named.
  void set_sampling(std::map<std::string, model::SamplingParameters> parameters) { sampling_ = std::move(parameters); }

  /// How much the programs do, from now on. `nothing` is permanent: they are detached, and no device has any I/O in
  /// later samples. Needs no privilege.
  void set_effort(model::Effort effort);

  BlockSample sample();
  /// One device alone, with its attribution as of the last sample; nothing if it is not measured.
  std::optional<DeviceSample> sample_device(const std::string& name);
  /// Volumes alone, as in a sample.
  std::vector<std::shared_ptr<const model::BioIo>> sample_volumes();
  /// To be called when everything in flight in these operations of a device is known to have ended unseen: it counts as
  /// missed now, and no longer as in flight. Unknown devices are ignored.
  void mark_in_flight_missed(const std::string& device, std::span<const model::Operation> operations);
  /// Cgroups whose directories are gone; those already reported, or never seen, are ignored. Once the counts of one
  /// stand still, they move to `departed` within a few samples, and it is no longer among the cgroups. If it sends I/O
  /// afterwards (from what a page cache still holds), it is among them again.
  void release_cgroups(const std::vector<model::CgroupId>& gone);
  [[nodiscard]] std::size_t measured_devices() const { return measured_.size() - devices_left_out_.size(); }
  /// To be measured, but the tables, made at the start, have no room for them, or for one of their paths. Sorted.
  [[nodiscard]] const std::vector<std::string>& devices_left_out() const { return devices_left_out_; }

  [[nodiscard]] const model::KernelFeatures& kernel_features() const { return btf_.features; }
  [[nodiscard]] model::HintReach hint_reach() const { return btf_.hint_reach; }
  [[nodiscard]] const MemoryPlan& memory() const { return plan_; }
  [[nodiscard]] std::vector<model::ProgramStats> program_stats() const;
  /// Absent where it could not be measured.
  [[nodiscard]] const std::optional<model::RunCost>& run_cost() const { return run_cost_; }
  /// Why submitters of discards cannot be seen; empty where they can.
  [[nodiscard]] const std::string& discards_unseen() const { return discards_unseen_; }
  /// Why volumes cannot be measured; empty where they are, where there was none at the start, and where it is off.
  [[nodiscard]] const std::string& volumes_unseen() const { return volumes_unseen_; }
  /// Why freezes of file systems cannot be seen; empty where they can.
  [[nodiscard]] const std::string& freezes_unseen() const { return freezes_unseen_; }

 private:
  BlockSource() = default;
  void use(std::unique_ptr<BlockPrograms> programs);
  void open_discards(const model::Inventory& inventory);
  void open_volumes(const model::Inventory& inventory, std::uint32_t end_chain);
  void open_freezes();
  void keep_rows(MeasuredDevice& measured);
  bool allocate_row(MeasuredDevice& measured, const model::Path& path);
  bool revive_row(MeasuredDevice& measured, const model::Path& path);
  void retire(TableRow& row);
  void read_rows();
  void release_finished();
  void release_from(std::vector<TableRow>& rows, MeasuredDevice& measured);
  [[nodiscard]] bool serves_others(const TableRow& row) const;
  void publish_decisions(const model::Inventory& inventory);
  void prefer(const model::Device& device, const TableRow& row);
  DeviceSample read_device(MeasuredDevice& measured);
  void read_attribution();
  void follow_sampling(const std::string& name, MeasuredDevice& measured);
  std::shared_ptr<const model::FlashSamples> read_samples();

  KernelBtf btf_;
  MemoryPlan plan_;
  ReadingRules rules_;
  std::unique_ptr<BlockPrograms> programs_;
  std::unique_ptr<DiscardPrograms> discard_programs_;  // null where the kernel lets us hook nothing
  std::optional<DiscardSubmissionReader> discards_;
  std::string discards_unseen_;
  std::unique_ptr<VolumePrograms> volume_programs_;  // likewise, and where there was no volume
  std::optional<VolumeReader> volumes_;
  std::string volumes_unseen_;
  std::unique_ptr<FreezePrograms> freeze_programs_;  // likewise
  std::string freezes_unseen_;
  std::optional<EndFunctionWatch> end_functions_;   // absent in completion-only mode without attribution
  std::optional<AttributionReader> attribution_;    // absent where it is switched off
  std::map<std::string, MeasuredDevice> measured_;  // by device name
  std::vector<TableRow> retiring_;                  // of devices that are gone or excluded
  TableAllocator allocator_;
  std::map<std::string, WritePreference> preferences_;
  std::map<std::string, model::SamplingParameters> sampling_;
  model::Effort effort_ = model::Effort::everything;
  std::optional<model::RunCost> run_cost_;
  std::uint32_t samplings_ = 0;            // numbers given so far
  std::vector<DiskDecision> without_row_;  // to be measured, but the tables are full
  std::vector<std::string> devices_left_out_;
};

}  // namespace ssdpulse::block
