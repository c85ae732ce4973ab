// SPDX-License-Identifier: Apache-2.0
// BlockSource: what the block layer did on each device.
// Gives every measured disk a place in the kernel's tables and turns the cells into the model's cumulative values.
// Owned by one thread. Only open() needs capabilities; sample() makes no system call at all.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "daemon/model/block_sample.h"
#include "daemon/model/device.h"
#include "daemon/model/snapshot.h"
#include "daemon/sources/block/block_programs.h"
#include "daemon/sources/block/cell_reader.h"
#include "daemon/sources/block/commit_reader.h"
#include "daemon/sources/block/discard_programs.h"
#include "daemon/sources/block/discard_submissions.h"
#include "daemon/sources/block/end_functions.h"
#include "daemon/sources/block/in_flight.h"
#include "daemon/sources/block/known_disks.h"
#include "daemon/sources/block/write_reader.h"

namespace ssdpulse::block {

using model::BlockSample;
using model::DeviceSample;
using model::OperationEvents;
using model::WritePreference;

/// What is decided before the programs are loaded, and not by the kernel.
struct BlockChoices {
  bool completion_only = false;
  std::optional<bool> hints_of_pages;  // without: where this kernel loses hints on the way
};

class BlockSource {
 public:
  /// Loads and attaches the programs, sized for the measured disks of the inventory; counting begins here.
  static util::Result<std::unique_ptr<BlockSource>> open(const model::Inventory& inventory,
                                                         const BlockChoices& choices);
  ~BlockSource();

  /// Disks came, went, or changed their coverage. Cheap when nothing did.
  void update(const model::Inventory& inventory);

  /// What the drives themselves prefer, by device; until known, what the kernel says.
  void set_write_preferences(std::map<std::string, WritePreference> preferences);

  BlockSample sample();
  /// One device alone; nothing if it is not measured.
  std::optional<DeviceSample> sample_device(const std::string& name);
  /// The caller knows that everything in flight in these operations of a device has ended unseen: it counts as missed
  /// now, and no longer as in flight. Unknown devices are ignored.
  void give_up(const std::string& device, std::span<const model::Operation> operations);
  [[nodiscard]] std::size_t measured_devices() const { return measured_.size(); }

  [[nodiscard]] const std::map<std::string, std::string>& kernel_features() const { return btf_.features; }
  [[nodiscard]] model::HintReach hint_reach() const { return btf_.hint_reach; }
  [[nodiscard]] const MemoryPlan& memory() const { return plan_; }
  [[nodiscard]] std::vector<model::ProgramStats> program_stats() const;
  /// Why submitters of discards cannot be seen; empty where they can.
  [[nodiscard]] const std::string& discards_unseen() const { return discards_unseen_; }

 private:
  /// A disk's index in the kernel's tables, and what was read there.
  struct Place {
    std::uint32_t device;
    std::string disk_name;
    std::uint64_t diskseq;
    SlotDemand demand;  // what its slots were chosen for
    std::uint32_t slot_base;
    std::uint32_t slots;
    std::vector<CellReader> readers;  // one for each operation
    WriteReader writes;
    CommitReader commits;
    std::array<operation_events, CLASSES> last_events;
    std::array<InFlight, CLASSES> in_flight{};
    bool retiring = false;  // nothing new is measured there; kept until what is in flight has ended
  };
  /// A device as users know it: one place, or one for each multipath path.
  struct Measured {
    std::shared_ptr<const model::Device> device;
    std::vector<Place> places;
    std::uint32_t drive = 0;  // index whose interference state all paths share, for the device's whole life
    model::DeviceIo io;
    OperationEvents events;
    std::shared_ptr<const model::DeviceIo> published;  // a copy of io; null when io has changed since
  };

  BlockSource() = default;
  void open_discards(const model::Inventory& inventory);
  void keep_places(Measured& measured);
  bool give_place(Measured& measured, const model::Path& path);
  bool take_back(Measured& measured, const model::Path& path);
  void set_retiring(Place& place, bool retiring);
  void release_finished();
  void release(const Place& place);
  void publish_decisions(const model::Inventory& inventory);
  void read_place(Place& place, Measured& measured);
  void read_writes(Place& place, Measured& measured);
  void prefer(const model::Device& device, const Place& place);
  DeviceSample read_device(Measured& measured);

  KernelBtf btf_;
  MemoryPlan plan_;
  bool completion_only_ = false;
  std::unique_ptr<BlockPrograms> programs_;
  std::unique_ptr<DiscardPrograms> discard_programs_;  // null where the kernel lets us hook nothing
  std::optional<DiscardSubmissionReader> discards_;
  std::string discards_unseen_;
  std::optional<EndFunctionWatch> end_functions_;  // absent in completion-only mode
  std::map<std::string, Measured> measured_;       // by device name
  std::vector<Place> retiring_;                    // of devices that are gone or excluded
  std::vector<std::uint32_t> free_devices_;
  std::map<std::uint32_t, std::uint32_t> free_slots_;  // base -> length
  std::map<std::string, WritePreference> preferences_;
  std::vector<DiskDecision> without_place_;  // to be measured, but the tables are full
};

}  // namespace ssdpulse::block
