// SPDX-License-Identifier: Apache-2.0
// MeasuredDevice: what has been read about a device so far, and its rows in the kernel's tables.
// A device as users know it has one row, or one for each path of a multipath head; what they count is added up.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/block/attribution_cells.h"
#include "daemon/block/block_programs.h"
#include "daemon/block/io_cells.h"
#include "daemon/block/kernel_memory.h"
#include "daemon/block/write_cells.h"
#include "daemon/model/device.h"
#include "daemon/model/device_identity.h"
#include "daemon/model/snapshot.h"
#include "daemon/model/source_samples.h"

namespace ssdpulse::block {

/// A disk's part of the kernel's tables, and what was read there. What the tables hold at construction is the baseline.
/// Its readers point into the tables, which must outlive it.
struct TableRow {
  TableRow(const Tables& tables, const MemoryPlan& plan, const model::Path& path, const Allocation& given);

  [[nodiscard]] bool in_flight() const;
  /// Over all operations; negative where their issues were not seen.
  [[nodiscard]] std::int64_t requests_in_flight() const;
  [[nodiscard]] bool is_of(const model::Path& path) const { return model::same_disk(disk_name, diskseq, path); }

  Allocation allocation;
  std::string disk_name;
  std::uint64_t diskseq;
  SlotDemand demand;                // what its slots were chosen for
  std::vector<CellReader> readers;  // one for each operation
  WriteReader writes;
  CommitReader commits;
  SampleReader samples;
  std::array<operation_events, CLASSES> last_events;
  std::array<InFlight, CLASSES> requests{};
  std::optional<Retirement> retirement;  // nothing new is measured there; kept until what is in flight has ended
};

/// How a device is sampled for the flash model, and what has been counted since.
struct Sampling {
  model::SamplingParameters parameters;
  model::DeviceFlashSamples totals;
};

struct MeasuredDevice {
  /// Whether each of its paths has a row that is not retiring.
  [[nodiscard]] bool whole() const;

  std::shared_ptr<const model::Device> device;
  std::vector<TableRow> rows;
  std::uint32_t drive = 0;  // index whose interference state all paths share, for the device's whole life
  model::DeviceIo io;
  model::OperationEvents events;
  std::optional<Sampling> sampling;
  std::shared_ptr<const model::DeviceIo> published;  // a copy of io; null when io has changed since
  AttributionAccount attribution;
};

/// What depends only on the mode and the kernel.
struct ReadingRules {
  bool issues_are_seen = true;                           // not in completion-only mode
  model::WriteHint no_hint = model::WriteHint::unknown;  // the hint of a write that carries none
};

/// Adds to measured.io what the row counted since the last call.
void read_row(const Tables& tables, const ReadingRules& rules, TableRow& row, MeasuredDevice& measured);

/// Passes to the attribution what the device itself has counted; `attributes`: whether it also attributed it.
void settle_attribution(const ReadingRules& rules, bool attributes, MeasuredDevice& measured);

/// Everything in flight there in this operation has ended unseen: it counts as missed now.
void mark_in_flight_missed(model::Operation operation, TableRow& row, MeasuredDevice& measured);

}  // namespace ssdpulse::block
