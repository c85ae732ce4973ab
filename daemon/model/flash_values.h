// SPDX-License-Identifier: Apache-2.0
// FlashSamples: what the kernel side reports about the host's writes for the flash model: it follows some pages of a
// drive and sends an event for each completed write, discard or write of zeroes that contains one of them. It also
// counts every written page, exactly. FlashFigures: what the models report, drive by drive: the write amplification
// that follows from what the host writes, for drives of this size that work as assumed. Modelled, never measured: what
// a drive counts itself is in WriteAmplification. Values only.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/base/complete.h"
#include "daemon/model/write_details.h"

namespace ssdpulse::model {

/// Which pages of a device are followed; see daemon/flash/flash_events.h for the choice. A drive's namespaces have the
/// same parameters except for `first_page`.
struct SamplingParameters {
  std::uint8_t page_bits = 12;   // a page has 2^page_bits bytes, 9 to 31
  std::uint8_t rate_bits = 0;    // one of 2^rate_bits pages is followed, 0 to 31
  std::uint32_t seed = 0;        // secret
  std::uint32_t followed = 0;    // pages of the whole drive, all its namespaces; not 0
  std::uint64_t first_page = 0;  // of the drive's pages, where the device begins
  bool operator==(const SamplingParameters&) const = default;
};

enum class FlashEventKind : std::uint8_t {
  write,
  discard,
  zeroes,       // the drive may deallocate what it is to zero, and nearly all do: treated as a discard
  zeroes_kept,  // it is asked not to deallocate, but still stores no data
};
inline constexpr std::size_t kFlashEventKinds = util::count_of<FlashEventKind>();

struct FlashEvent {
  std::uint32_t first = 0;   // index among the followed pages of the drive, all its namespaces
  std::uint32_t count = 0;   // of consecutive followed pages
  std::uint16_t device = 0;  // index in FlashSamples::devices
  FlashEventKind kind = FlashEventKind::write;
  std::uint8_t hint = 0;  // WriteHint; 0 for a discard
  bool operator==(const FlashEvent&) const = default;
};

using PagesByHint = std::array<std::uint64_t, kWriteHints>;

/// Totals since sampling of the device with these parameters began. What has not been read yet counts in the next
/// reading.
struct DeviceFlashSamples {
  std::string device;
  std::uint64_t sampling = 0;                          // number of this set of parameters, never reused; totals restart
  PagesByHint written{};                               // pages, including those of lost events; read after the events
  std::array<std::uint64_t, kFlashEventKinds> lost{};  // events for which the buffer had no room
};

/// Since the last reading.
struct FlashSamples {
  std::vector<FlashEvent> events;           // in the order in which they were sent, of all devices
  std::vector<DeviceFlashSamples> devices;  // sampled ones, sorted by name
};

/// Which block is collected, and where its valid pages go.
enum class CollectionPolicy : std::uint8_t {
  greedy,              // fewest valid pages; they go where the host's go
  greedy_gc_frontier,  // fewest valid pages; they go to a frontier of their own
  cost_benefit,        // most (1 - u) / 2u * age, u being the valid share; a frontier of their own
  fifo,                // the oldest; they go where the host's go
};
inline constexpr std::size_t kCollectionPolicies = util::count_of<CollectionPolicy>();
inline constexpr auto kCollectionPolicyNames =
    util::names<CollectionPolicy>({"greedy", "greedy_gc_frontier", "cost_benefit", "fifo"});

enum class Discards : std::uint8_t { honoured, ignored };
inline constexpr auto kDiscardsNames = util::names<Discards>({"honoured", "ignored"});

/// What is kept apart: nothing, data of different hints, or data whose previous versions had different lifetimes.
enum class Placement : std::uint8_t { none, hints, last_lifetime };
inline constexpr auto kPlacementNames = util::names<Placement>({"none", "hints", "last_lifetime"});

/// Whether pages without any event since the start are assumed to hold data. If there are many of them, one run of each
/// kind bounds the unknown.
enum class UnknownPages : std::uint8_t { mapped, empty };

struct WhatIf {
  double overprovisioning = 0.12;  // flash that can hold data over what the host sees, less 1
  CollectionPolicy policy = CollectionPolicy::greedy_gc_frontier;
  Discards discards = Discards::honoured;
  Placement placement = Placement::none;
  UnknownPages unknown = UnknownPages::mapped;
  bool operator==(const WhatIf&) const = default;
};

/// Of write amplification. The bounds hold for a drive that works like its model.
struct Estimate {
  double ratio = 1;
  double lower = 1;
  double upper = 1;
  bool operator==(const Estimate&) const = default;
};

/// Why there is no estimate. The wording is in daemon/flash/flash_input.h.
enum class FlashSilence : std::uint8_t {
  rotational,
  zoned,
  virtual_device,
  compression,
  no_size,
  too_small,
  no_memory,
  partly_measured,
  written_elsewhere,
  warming_up,
  few_writes,
  events_lost,
  wide_bounds,
  unknown_pages,
};
inline constexpr std::size_t kFlashSilences = util::count_of<FlashSilence>();
inline constexpr auto kFlashSilenceNames = util::names<FlashSilence>(
    {"rotational", "zoned", "virtual", "compression", "no_size", "too_small", "no_memory", "partly_measured",
     "written_elsewhere", "warming_up", "few_writes", "events_lost", "wide_bounds", "unknown_pages"});

/// The last day or week, or the time the host took to write as much as the drive holds.
enum class FlashWindow : std::uint8_t { day, week, drive_write };
inline constexpr std::size_t kFlashWindows = util::count_of<FlashWindow>();
inline constexpr auto kFlashWindowNames = util::names<FlashWindow>({"24h", "7d", "drive_write"});

struct ModelledAmplification {
  WhatIf what_if;
  FlashWindow window = FlashWindow::day;
  Estimate estimate;
};

struct WriteLifetime {
  std::uint8_t hint = 0;  // WriteHint
  double quantile = 0.5;
  double bytes = 0;  // that the host wrote in the meantime
};

/// Data declared as shorter-lived lives longer.
struct HintOrderViolation {
  std::uint8_t shorter = 0;  // WriteHint, as declared
  std::uint8_t longer = 0;
  double median_of_shorter_bytes = 0;
  double median_of_longer_bytes = 0;
};

struct FlashReport {
  std::array<std::optional<FlashSilence>, kFlashWindows> silence;
  std::vector<ModelledAmplification> amplification;  // of windows that are not silent; the first what-if is the base
  double drive_writes = 0;                           // since the start
  double unknown_pages = 0;                          // share
  double lost_writes = 0;                            // share of the events of the last drive write
  double lost_discards = 0;
  std::uint64_t sampled_writes = 0;
  std::uint64_t block_bytes = 0;  // that were modelled
  std::vector<WriteLifetime> lifetimes;
  std::array<std::optional<double>, 8> alive;  // by hint: share of the versions born since the start still live
  std::vector<HintOrderViolation> order_violations;
  std::optional<std::uint64_t> written_since_full_discard_bytes;
};

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

/// How much could be modelled for each drive within the memory for all: see daemon/flash/model_set.h.
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
