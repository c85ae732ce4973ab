// SPDX-License-Identifier: Apache-2.0
#include "daemon/analysis/flash_model/model_budget.h"

#include <algorithm>

namespace ssdpulse::analysis {
namespace {

struct Step {
  ModelScale scale;
  std::uint64_t wanted_pages;
  std::size_t what_ifs;
};

// The base alone still has its bounds, from its quarters; its over-provisioning curve then comes from lifetimes.
constexpr std::array kSteps{
    Step{ModelScale::all, PageSample::kUsualPages, 9},
    Step{ModelScale::fewer_what_ifs, PageSample::kUsualPages, 7},
    Step{ModelScale::fewer_what_ifs, PageSample::kUsualPages, 5},
    Step{ModelScale::fewer_what_ifs, PageSample::kUsualPages, 3},
    Step{ModelScale::fewer_what_ifs, PageSample::kUsualPages, 1},
    Step{ModelScale::smaller_samples, PageSample::kUsualPages / 2, 3},  // three policies: the band
    Step{ModelScale::smaller_samples, PageSample::kUsualPages / 2, 1},
};

std::uint64_t bytes_with(FlashModelSettings running, std::size_t what_ifs) {
  running.what_ifs.resize(std::min(running.what_ifs.size(), what_ifs));
  return FlashModel::memory_bytes(running);
}

}  // namespace

FlashModelSettings settings_under(const ModelPlan& plan, FlashModelSettings drive) {
  drive.rate_bits = plan.rate_bits.value_or(live_rate_bits(drive.size_bytes / drive.page_bytes, plan.wanted_pages));
  drive.what_ifs.resize(std::min(drive.what_ifs.size(), plan.what_ifs));
  while (drive.what_ifs.size() > 1 && FlashModel::memory_bytes(drive) > ModelBudget::kMaxOfADrive) {
    drive.what_ifs.pop_back();
  }
  return drive;
}

ModelPlan ModelBudget::plan(std::span<const FlashModelSettings> coming,
                            std::span<const FlashModelSettings> running) const {
  ModelPlan result;
  for (const Step& step : kSteps) {
    result = {step.scale, step.wanted_pages, step.what_ifs, 0, 0, rate_bits_};
    for (const FlashModelSettings& drive : running) {
      result.bytes += bytes_with(drive, step.what_ifs);
    }
    for (const FlashModelSettings& drive : coming) {
      const std::uint64_t bytes = FlashModel::memory_bytes(settings_under(result, drive));
      if (result.bytes + bytes > bytes_) {
        break;
      }
      result.bytes += bytes;
      ++result.drives;
    }
    if (result.drives == coming.size() && result.bytes <= bytes_) {
      return result;
    }
  }
  result.scale = ModelScale::fewer_drives;
  return result;
}

}  // namespace ssdpulse::analysis
