// SPDX-License-Identifier: Apache-2.0
// ModelBudget: how much is modelled for each drive when all models share one memory budget.
// All drives get the same. If it does not suffice for all, fewer what-ifs are run, then fewer pages are followed, and
// finally the drives that come last get no model. A running model may lose what-ifs to new ones, but never pages: with
// fewer pages it would restart.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "daemon/analysis/flash_model/flash_model.h"
#include "daemon/util/complete.h"

namespace ssdpulse::analysis {

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
  /// of new ones, but only the number of what-ifs of running ones; all other settings are complete.
  [[nodiscard]] ModelPlan plan(std::span<const FlashModelSettings> coming,
                               std::span<const FlashModelSettings> running = {}) const;

 private:
  std::uint64_t bytes_;
  std::optional<unsigned> rate_bits_;
};

/// The settings of one drive under a plan.
FlashModelSettings settings_under(const ModelPlan& plan, FlashModelSettings drive);

}  // namespace ssdpulse::analysis
