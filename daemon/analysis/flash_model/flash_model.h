// SPDX-License-Identifier: Apache-2.0
// What does one drive relocate, by what the host writes? The model of one drive, fed with live events.
//
// How it is used: one thread of the daemon owns all models. Sources put events into a bounded queue, which that thread
// empties once a tick, with the exact counts of pages that were read after the events; what does not fit is counted as
// lost. Reports are made every half minute and handed to the snapshot. State is saved when the daemon stops, and at
// most once an hour: see daemon/flash.
//
// Costs: 60 to 100 ns for each event, what-if and copy; 1.2 MB for a what-if at 65,536 followed pages, 1.8 MB for the
// base. Pure: times come with the ticks. Not thread-safe.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/analysis/flash_model/event_losses.h"
#include "daemon/analysis/flash_model/flash_event.h"
#include "daemon/analysis/flash_model/page_sample.h"
#include "daemon/analysis/flash_model/what_if_run.h"
#include "daemon/analysis/flash_model/window_marks.h"
#include "daemon/util/result.h"

namespace ssdpulse::analysis {

struct FlashModelSettings {
  std::string serial;               // of the drive, and what else tells its data from others
  std::uint64_t size_bytes = 0;     // all namespaces and what they leave unused
  std::uint64_t page_bytes = 4096;  // what the drive maps: its preferred write granularity
  unsigned rate_bits = 0;           // one of 2^rate_bits pages is followed; see live_rate_bits()
  std::uint32_t seed = 0;
  std::vector<WhatIf> what_ifs;  // the first is the base; see default_what_ifs()
  bool operator==(const FlashModelSettings&) const = default;
};

class FlashModel {
 public:
  static constexpr std::uint64_t kLeastFollowed = 24576;      // pages: blocks of halves are too small with fewer
  static constexpr std::uint64_t kLeastSampledWrites = 1024;  // in a window: 1 % of noise
  static constexpr double kWidestBounds = 0.25;
  static constexpr double kMuchUnknown = 0.1;
  static constexpr double kLongGap = 0.02;  // drive writes that nobody looked at

  /// A drive of at least kLeastFollowed followed pages.
  explicit FlashModel(const FlashModelSettings& settings);
  [[nodiscard]] static bool possible(const FlashModelSettings& settings);
  [[nodiscard]] static std::size_t memory_bytes(const FlashModelSettings& settings);

  /// Indexes beyond the sample, of a drive that was resized, are left out.
  void observe(const FlashTick& tick);

  /// After format, sanitize or creation: no page holds data, and nothing is unknown.
  void start_empty();
  /// Memory is short: what-ifs beyond the first `most` are not asked any more.
  void keep_what_ifs(std::size_t most);
  /// The host wrote so much while nobody looked.
  void mark_gap(std::uint64_t bytes);

  [[nodiscard]] model::FlashReport report() const;
  [[nodiscard]] const FlashModelSettings& settings() const { return settings_; }
  [[nodiscard]] const PageSample& sample() const { return sample_; }
  [[nodiscard]] const Lifetimes& lifetimes() const { return lifetimes_; }
  [[nodiscard]] const std::vector<WhatIfRun>& runs() const { return runs_; }

  [[nodiscard]] std::string save() const;
  /// What goes on bit for bit as what was saved; only of the same drive, size, seed and what-ifs. `at`: now.
  static util::Result<std::unique_ptr<FlashModel>> restore(const FlashModelSettings& settings, std::string_view state,
                                                           std::chrono::nanoseconds at);

 private:
  void start_runs();
  void take(const FlashEvent& event);
  void write(std::uint32_t page, std::uint8_t hint);
  void discard(std::uint32_t page);
  void advance(const PagesByHint& pages);
  [[nodiscard]] WindowMark mark(std::chrono::nanoseconds at) const;
  [[nodiscard]] const WindowMark* begin_of(model::FlashWindow window) const;
  [[nodiscard]] std::optional<model::FlashSilence> silence(const WindowMark* from, const WindowMark& now) const;
  [[nodiscard]] std::vector<model::ModelledAmplification> amplification(model::FlashWindow window,
                                                                        const WindowMark& from,
                                                                        const WindowMark& now) const;
  [[nodiscard]] std::optional<Estimate> base(const WindowMark& from, const WindowMark& now) const;
  void save_fields(BinaryWriter& out) const;
  bool restore_fields(BinaryReader& in);

  FlashModelSettings settings_;
  std::uint64_t drive_pages_;
  PageSample sample_;
  Lifetimes lifetimes_;
  LifetimeClasses classes_;
  std::vector<WhatIfRun> runs_;
  EventLosses losses_;
  WindowMarks marks_;
  std::chrono::nanoseconds now_{0};
  std::uint64_t written_ = 0;  // pages of the drive
  std::uint64_t warm_at_ = 0;  // when so many were written
  std::uint64_t sampled_writes_ = 0;
  std::optional<std::uint64_t> full_discard_at_;  // when so many pages were written
};

/// At most one of 256 pages, so that 100,000 writes a second cost no more than half a percent of a core; of drives
/// below 24 GiB (4 KiB pages), which would have too few then, one of 128, at twice the cost.
unsigned live_rate_bits(std::uint64_t drive_pages, std::uint64_t wanted_pages);

}  // namespace ssdpulse::analysis
