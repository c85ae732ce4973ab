// SPDX-License-Identifier: Apache-2.0
// How much may be asked of each drive, when all models share one budget of memory?
// All drives get the same. Where it does not suffice for all, fewer what-ifs are asked, then fewer pages are followed,
// and at last the drives that come last get no model. A model that runs may lose what-ifs to those that come, but never
// pages: with fewer of them it would restart.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "daemon/analysis/flash_model/flash_model.h"

namespace ssdpulse::analysis {

enum class ModelScale : std::uint8_t { all, fewer_what_ifs, smaller_samples, fewer_drives };
inline constexpr std::array<std::string_view, 4> kModelScaleNames{"all", "fewer_what_ifs", "smaller_samples",
                                                                  "fewer_drives"};

struct ModelPlan {
  ModelScale scale = ModelScale::all;
  std::uint64_t wanted_pages = PageSample::kUsualPages;  // for live_rate_bits()
  std::size_t what_ifs = 0;                              // at most, the base among them
  std::size_t drives = 0;                                // of those that come, the first
  std::uint64_t bytes = 0;                               // that all models take
  std::optional<unsigned> rate_bits = {};                // instead of wanted_pages
};

class ModelBudget {
 public:
  static constexpr std::uint64_t kDefault = std::uint64_t{128} << 20;
  static constexpr std::uint64_t kMostOfADrive = std::uint64_t{16} << 20;

  /// `rate_bits`: of all samples, whatever the size of their drive.
  explicit ModelBudget(std::uint64_t bytes = kDefault, std::optional<unsigned> rate_bits = std::nullopt)
      : bytes_(bytes), rate_bits_(rate_bits) {}

  /// What the models of drives that come get, beside those that run. Settings of the former are filled in but for rate
  /// and what-ifs' number, which the plan says; of the latter, for what-ifs' number alone.
  [[nodiscard]] ModelPlan plan(std::span<const FlashModelSettings> coming,
                               std::span<const FlashModelSettings> running = {}) const;

 private:
  std::uint64_t bytes_;
  std::optional<unsigned> rate_bits_;
};

/// The settings of one drive under a plan.
FlashModelSettings settings_under(const ModelPlan& plan, FlashModelSettings drive);

}  // namespace ssdpulse::analysis
