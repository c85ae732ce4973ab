// SPDX-License-Identifier: Apache-2.0
// What is a miniature drive told of the host's I/O?
// The kernel side samples (PageSample) and sends one event for each completed write, discard or write of zeroes that
// holds a followed page; the indexes of those pages are consecutive. Beside them it counts every page that was written,
// by hint, because the log moves with all of them. Completions may come in another order than they were issued: wear
// does not mind, for two writes of a page that were in flight together have no order.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <span>

#include "daemon/model/write_details.h"

namespace ssdpulse::analysis {

enum class FlashEventKind : std::uint8_t {
  write,
  discard,
  zeroes,  // the drive may deallocate what it is told to zero, and nearly all do: taken for a discard
};

/// As it comes from the kernel.
struct FlashEvent {
  std::uint32_t first = 0;  // index among the followed pages of the drive, all its namespaces
  std::uint32_t count = 0;
  std::uint32_t time_ms = 0;  // wraps; for diagnosis, since the clock of the model is volume
  FlashEventKind kind = FlashEventKind::write;
  std::uint8_t hint = 0;  // model::WriteHint
  std::uint16_t device = 0;
};
static_assert(sizeof(FlashEvent) == 16);

using PagesByHint = std::array<std::uint64_t, model::kWriteHints>;

/// What happened to one drive between two ticks. Events in the order in which they came.
struct FlashTick {
  std::chrono::nanoseconds at{0};  // monotonic
  std::span<const FlashEvent> events;
  PagesByHint written{};            // pages of the drive, exactly: those of events that were lost, too
  std::uint64_t lost_writes = 0;    // events
  std::uint64_t lost_discards = 0;  // discards and zeroes
};

}  // namespace ssdpulse::analysis
