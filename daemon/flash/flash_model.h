// SPDX-License-Identifier: Apache-2.0
// FlashModel: a model of what one drive relocates, given what the host writes; ModelBudget: how much is modelled for
// each drive. Fed with live events; one thread of the daemon owns all models (see ModelRunner and ModelSet). Costs: 60
// to 100 ns per event, what-if and copy; 1.2 MB for a what-if at 65,536 followed pages, 1.8 MB for the base. Pure:
// times come with the ticks. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/base/complete.h"
#include "daemon/base/result.h"
#include "daemon/flash/flash_events.h"
#include "daemon/flash/what_if_runs.h"

namespace ssdpulse::flash {

struct FlashModelSettings {
  std::string serial;               // of the drive, and whatever else distinguishes its data
  std::uint64_t size_bytes = 0;     // of all its namespaces
  std::uint64_t page_bytes = 4096;  // what the drive maps: its preferred write granularity
  unsigned rate_bits = 0;           // one of 2^rate_bits pages is followed; see live_rate_bits()
  std::uint32_t seed = 0;
  std::vector<WhatIf> what_ifs;  // the first is the base; see default_what_ifs()

  bool operator==(const FlashModelSettings&) const = default;
  void save(BinaryWriter& out) const;
};

class FlashModel {
 public:
  static constexpr std::uint64_t kMinFollowed = 24576;      // pages; with fewer, the halves' blocks are too small
  static constexpr std::uint64_t kMinSampledWrites = 1024;  // in a window: 1 % of noise
  static constexpr double kWidestBounds = 0.25;             // from lower to upper, as a share of the ratio
  static constexpr double kMuchUnknown = 0.1;               // share of the followed pages
  static constexpr double kLongGap = 0.02;                  // drive writes that were not observed
  static constexpr double kWarmAfterGap = 0.25;             // drive writes before anything is reported again

  /// Drive writes before anything is reported, by the over-provisioning of the base. See also mark_gap().
  static constexpr double warm_drive_writes(double overprovisioning) { return overprovisioning > 0.12 ? 1 : 0.5; }

  /// Only for possible() settings.
  explicit FlashModel(const FlashModelSettings& settings);
  /// A what-if, at least kMinFollowed followed pages, and at most MiniatureDrive::kMaxPages.
  [[nodiscard]] static bool possible(const FlashModelSettings& settings);
  [[nodiscard]] static std::size_t memory_bytes(const FlashModelSettings& settings);

  /// Indexes beyond the sample, of a drive that was resized, are ignored.
  void observe(const FlashTick& tick);

  /// After format, sanitize or creation: no page holds data, and nothing is unknown.
  void start_empty();
  /// Memory is short: drops the what-ifs beyond the first `max_runs`.
  void keep_what_ifs(std::size_t max_runs);
  /// The host wrote this much unobserved. If it is more than kLongGap, nothing is reported until a quarter of a drive
  /// write has been observed.
  void mark_gap(std::uint64_t bytes);

  /// Looks at every followed page: takes milliseconds.
  [[nodiscard]] model::FlashReport report() const;
  [[nodiscard]] const FlashModelSettings& settings() const { return settings_; }
  [[nodiscard]] const PageSample& sample() const { return sample_; }
  [[nodiscard]] const Lifetimes& lifetimes() const { return lifetimes_; }
  [[nodiscard]] const std::vector<WhatIfRun>& runs() const { return runs_; }

  [[nodiscard]] std::string save() const;
  /// A model that continues bit for bit as the saved one; only for the same drive, size, seed and what-ifs. `at`: now.
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
  std::uint64_t warm_at_ = 0;  // once this many are written
  std::uint64_t sampled_writes_ = 0;
  std::optional<std::uint64_t> full_discard_at_;  // when this many pages were written
};

/// At most one in 256 pages, so that 100,000 writes a second cost no more than half a percent of a core; on drives
/// below 24 GiB (4 KiB pages), which would then have too few, one in 128, at twice the cost.
unsigned live_rate_bits(std::uint64_t drive_pages, std::uint64_t wanted_pages);

enum class ModelScale : std::uint8_t { all, fewer_what_ifs, smaller_samples, fewer_drives };
inline constexpr auto kModelScaleNames =
    util::names<ModelScale>({"all", "fewer_what_ifs", "smaller_samples", "fewer_drives"});

struct ModelPlan {
  ModelScale scale = ModelScale::all;
  std::uint64_t wanted_pages = PageSample::kUsualPages;  // for live_rate_bits()
  std::size_t what_ifs = 0;                              // at most, including the base
  std::size_t drives = 0;                                // how many of the new drives get a model, in order
  std::uint64_t bytes = 0;                               // of all models
  std::optional<unsigned> rate_bits = {};                // instead of wanted_pages
};

/// The memory that all models share. All drives get the same. If it does not suffice for all, fewer what-ifs are run,
/// then fewer pages are followed, and finally the drives that come last get no model. A running model may lose what-ifs
/// to new models, but never pages: with fewer pages it would restart.
class ModelBudget {
 public:
  /// Bytes of all models.
  static constexpr std::uint64_t kDefault = std::uint64_t{128} << 20;
  /// Bytes of one drive's model; the base may need more.
  static constexpr std::uint64_t kMaxOfADrive = std::uint64_t{16} << 20;

  /// `rate_bits`: for all samples, whatever the size of their drive.
  explicit ModelBudget(std::uint64_t bytes = kDefault, std::optional<unsigned> rate_bits = std::nullopt)
      : bytes_(bytes), rate_bits_(rate_bits) {}

  /// What the models of new drives get while others are running. The plan decides the rate and the number of what-ifs
  /// of new models, but only the number of what-ifs of running models; all other settings are complete.
  [[nodiscard]] ModelPlan plan(std::span<const FlashModelSettings> coming,
                               std::span<const FlashModelSettings> running = {}) const;

 private:
  std::uint64_t bytes_;
  std::optional<unsigned> rate_bits_;
};

/// The settings of one drive under a plan.
FlashModelSettings settings_under(const ModelPlan& plan, FlashModelSettings drive);

}  // namespace ssdpulse::flash
