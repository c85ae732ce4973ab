// SPDX-License-Identifier: Apache-2.0
// What the daemon's flash models report at one moment, drive by drive, and the state of the models: part of the
// Snapshot.
// Modelled, never measured: what a drive counts itself is in nvme.h. Values only.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/model/flash.h"
#include "daemon/util/complete.h"

namespace ssdpulse::model {

/// Where the over-provisioning that a model assumes comes from.
enum class OverprovisioningBasis : std::uint8_t {
  size,           // usual for drives of this nominal size
  media_counter,  // fitted: with it the model relocates as much as the drive counts
};
inline constexpr auto kOverprovisioningBasisNames = util::names<OverprovisioningBasis>({"size", "media_counter"});

struct EffectiveOverprovisioning {
  double likely = 0;  // flash that can hold data over what the host sees, less 1
  double lower = 0;
  double upper = 0;
  OverprovisioningBasis basis = OverprovisioningBasis::size;
  std::optional<CollectionPolicy> policy = {};  // the only one that explains everything the drive counted
  bool operator==(const EffectiveOverprovisioning&) const = default;
};

/// The model compared with the drive's own counter, over the last day, at the over-provisioning fitted before that day.
struct ModelDrift {
  double ratio = 0;  // modelled over measured, less 1: 0 is agreement
  double lower = 0;
  double upper = 0;
};

/// A range of bytes.
struct ByteRange {
  double lower = 0;
  double upper = 0;
};

struct FlashEstimate {
  std::string controller;                     // nvme0; empty where the drive is no NVMe drive
  std::vector<std::string> devices;           // its namespaces or the disk itself, sorted; at least one
  std::uint64_t size_bytes = 0;               // of all of them
  std::uint64_t page_bytes = 0;               // that the model maps
  std::optional<FlashSilence> silence;        // there is no model of this drive; then there is no report either
  std::shared_ptr<const FlashReport> report;  // null until the model is first read
  EffectiveOverprovisioning overprovisioning;
  double modelled_overprovisioning = 0;  // of the base run: what `overprovisioning` was when the model began
  /// One answer per window, absent where the report is silent: at the fitted over-provisioning, with bounds over all
  /// policies that explain the drive; without a fit, at the usual one, with bounds over all modelled policies.
  std::array<std::optional<Estimate>, kFlashWindows> likely;
  std::optional<ModelDrift> drift;
  /// Of host writes since the last full discard: where garbage collection begins. Absent without such a discard.
  std::optional<ByteRange> collection_begins;
  std::uint64_t lost_writes = 0;  // events, since the daemon's start
  std::uint64_t lost_discards = 0;
  bool resumed = false;  // from the state that an earlier process kept

  /// Its name for people: the controller, or the disk.
  [[nodiscard]] const std::string& name() const { return controller.empty() ? devices.front() : controller; }
};

/// How much could be modelled for each drive within the memory for all: see analysis/flash_model/model_budget.h.
struct FlashFigures {
  std::string scale;  // all, fewer_what_ifs, smaller_samples or fewer_drives
  std::uint64_t memory_bytes = 0;
  std::uint64_t memory_limit_bytes = 0;
  std::uint64_t overflowed_events = 0;  // that the models' thread did not take in time; part of the lost ones
  std::uint64_t states_rejected = 0;    // files that were damaged or could not be read
  std::uint64_t state_failures = 0;     // of writing them
  std::vector<FlashEstimate> drives;    // sorted by name
};

}  // namespace ssdpulse::model
