// SPDX-License-Identifier: Apache-2.0
// FlashTick: what a miniature drive learns about the host's I/O on one drive between two ticks.
// The kernel side samples (PageSample) and sends one event for each completed write, discard or write of zeroes that
// contains a followed page; the indexes of those pages are consecutive. It also counts every page that was written, by
// hint, because the log moves with all of them. Completions may come in a different order than the I/Os were issued.
// That does not matter for wear: two writes of a page that were in flight together have no order.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>

#include "daemon/model/flash_samples.h"

namespace ssdpulse::analysis {

using model::FlashEvent;
using model::FlashEventKind;
using model::PagesByHint;

/// Events are in the order in which they came. Does not own them.
struct FlashTick {
  std::chrono::nanoseconds at{0};  // monotonic
  std::span<const FlashEvent> events;
  PagesByHint written{};            // pages of the drive, exactly: including those of lost events
  std::uint64_t lost_writes = 0;    // events
  std::uint64_t lost_discards = 0;  // discards and zeroes
};

}  // namespace ssdpulse::analysis
