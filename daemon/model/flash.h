// SPDX-License-Identifier: Apache-2.0
// What the flash model reports about one drive: the write amplification that follows from what the host writes, for
// drives of this size that work as assumed. Modelled, never measured: write_amplification in nvme.h is what a drive
// counts.
// Values only.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "daemon/util/complete.h"

namespace ssdpulse::model {

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

/// Why there is no estimate. The wording is in daemon/analysis/flash_model/silence.h.
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

}  // namespace ssdpulse::model
