// SPDX-License-Identifier: Apache-2.0
// How much may be asked of each drive, when all models share one budget of memory?
// All drives get the same. Where it does not suffice for all, fewer what-ifs are asked, then fewer pages are followed,
// and at last the drives that come last get no model. Which of it happened is said, for a metric and the log.
#pragma once

#include <array>
#include <cstdint>
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
  std::size_t drives = 0;                                // of those that were asked for, the first
  std::uint64_t bytes = 0;                               // that all models take
};

class ModelBudget {
 public:
  static constexpr std::uint64_t kDefault = std::uint64_t{128} << 20;
  static constexpr std::uint64_t kMostOfADrive = std::uint64_t{16} << 20;

  explicit ModelBudget(std::uint64_t bytes = kDefault) : bytes_(bytes) {}

  /// What the models of these drives get. Settings are filled in but for rate and what-ifs' number, which the plan
  /// says.
  [[nodiscard]] ModelPlan plan(std::span<const FlashModelSettings> drives) const;

 private:
  std::uint64_t bytes_;
};

/// The settings of one drive under a plan.
FlashModelSettings settings_under(const ModelPlan& plan, FlashModelSettings drive);

}  // namespace ssdpulse::analysis
