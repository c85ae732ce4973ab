// SPDX-License-Identifier: Apache-2.0
#include "daemon/flash/flash_what_if.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "daemon/base/figure_text.h"
#include "daemon/flash/flash_fit.h"
#include "daemon/flash/flash_input.h"
#include "daemon/flash/flash_model.h"

namespace ssdpulse::flash {
namespace {

using model::Estimate;
using model::FlashEstimate;
using model::FlashSilence;
using model::FlashWindow;

constexpr double kSteady = 2;  // drive writes

std::optional<FlashSilence> silence_of(const FlashEstimate& drive, FlashWindow window) {
  if (drive.silence) {
    return drive.silence;
  }
  return drive.report ? drive.report->silence[static_cast<std::size_t>(window)] : FlashSilence::warming_up;
}

FlashWindow best_window(const FlashEstimate& drive) {
  for (const FlashWindow window : {FlashWindow::day, FlashWindow::week, FlashWindow::drive_write}) {
    if (!silence_of(drive, window) && drive.likely[static_cast<std::size_t>(window)]) {
      return window;
    }
  }
  return FlashWindow::drive_write;
}

std::string percent(double share) { return fmt::format("{:.3g} %", share * 100); }

std::string none_modelled_text(const FlashEstimate& drive, FlashSilence silence) {
  std::string text = "none modelled: " + silence_text(silence);
  const double wanted = FlashModel::warm_drive_writes(drive.modelled_overprovisioning);
  if (silence == FlashSilence::warming_up && drive.report) {
    text += drive.report->drive_writes < wanted
                ? fmt::format(" ({:.2f} of {:.1f} drive writes)", drive.report->drive_writes, wanted)
                : fmt::format(" or since a gap ({:.2f} drive writes are needed)", FlashModel::kWarmAfterGap);
  }
  return text;
}

const model::NvmeDrive* counters_of(const model::Snapshot& snapshot, const FlashEstimate& drive) {
  const auto found =
      std::find_if(snapshot.nvme_drives.begin(), snapshot.nvme_drives.end(),
                   [&](const model::NvmeDrive& one) { return one.identity->controller == drive.controller; });
  return drive.controller.empty() || found == snapshot.nvme_drives.end() ? nullptr : &*found;
}

void add_counters(const model::NvmeDrive& drive, WhatIfAnswer& answer) {
  const auto& waf = drive.write_amplification;
  const std::string_view wanted = answer.window == FlashWindow::week ? "7d" : "24h";
  for (const model::WriteAmplificationRatio& ratio : waf.ratios) {
    if (ratio.window == wanted || (ratio.window == "lifetime" && !answer.measured)) {
      answer.measured = ratio;
    }
  }
  for (const model::LifeRemaining& life : waf.life_remaining) {
    answer.life_seconds = std::min(answer.life_seconds.value_or(life.seconds), life.seconds);
  }
}

void add_row(WhatIfAnswer& answer, const model::WhatIf& what, const Estimate& estimate, bool interpolated) {
  WhatIfRow row{what, estimate, interpolated, {}};
  if (answer.life_seconds && answer.likely) {
    const double wear = *answer.life_seconds * answer.likely->ratio;
    row.life = WhatIfLife{wear / estimate.ratio, wear / estimate.upper, wear / estimate.lower};
  }
  answer.rows.push_back(row);
}

void add_curve(const FlashEstimate& drive, const WhatIfQuestion& question, WhatIfAnswer& answer) {
  const auto curve = curve_of(*drive.report, answer.window);
  std::vector<double> wanted = question.overprovisioning;
  std::sort(wanted.begin(), wanted.end());
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  for (const double value : wanted) {
    const bool modelled = std::any_of(curve.begin(), curve.end(), [value](const CurvePoint& point) {
      return std::abs(point.overprovisioning - value) < 1e-9;
    });
    if (const auto found = interpolate(curve, value)) {
      add_row(answer, {value, kMiddlePolicy}, *found, !modelled);
    } else {
      answer.beyond.push_back(value);
    }
  }
}

/// Everything else was modelled at only one over-provisioning.
void add_others(const FlashEstimate& drive, WhatIfAnswer& answer) {
  std::optional<model::WhatIf> base;
  for (const model::ModelledAmplification& found : drive.report->amplification) {
    if (found.window != answer.window) {
      continue;
    }
    base = base.value_or(found.what_if);
    model::WhatIf same = found.what_if;
    same.overprovisioning = base->overprovisioning;
    if (found.what_if == *base || same != *base) {
      add_row(answer, found.what_if, found.estimate, false);
    }
  }
}

void add_assumptions(const FlashEstimate& drive, WhatIfAnswer& answer) {
  const auto& spare = drive.overprovisioning;
  if (spare.basis == model::OverprovisioningBasis::media_counter) {
    answer.assumptions.push_back(fmt::format(
        "the drive has {} of spare flash ({} to {}): with that much, the model relocates as much as the drive reports",
        percent(spare.likely), percent(spare.lower), percent(spare.upper)));
    answer.assumptions.push_back(
        spare.policy ? fmt::format("it collects as {}: no other policy explains what it counted under all its loads",
                                   name(*spare.policy, model::kCollectionPolicyNames))
                     : "how it collects is not known yet: several policies explain what it counted");
  } else {
    answer.assumptions.push_back(
        fmt::format("the drive has {} of spare flash ({} to {}), as usual for its size: nothing measured says more",
                    percent(spare.likely), percent(spare.lower), percent(spare.upper)));
  }
  answer.assumptions.push_back("the host keeps writing as it did in this window");
  answer.assumptions.push_back(fmt::format("erase blocks of {}; wear levelling, refresh and SLC caches are ignored",
                                           util::format_size(static_cast<double>(drive.report->block_bytes))));
  if (drive.report->drive_writes < kSteady) {
    answer.assumptions.push_back(
        fmt::format("{:.2f} drive writes were seen: it is steady after {:.0f}", drive.report->drive_writes, kSteady));
  }
  if (drive.report->unknown_pages > 0.1) {
    answer.assumptions.push_back(fmt::format(
        "{} of the drive was not written since the model started and is assumed to be data: run fstrim to find out",
        percent(drive.report->unknown_pages)));
  }
}

}  // namespace

std::optional<std::vector<double>> percents_in(std::string_view text) {
  std::vector<double> shares;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (true) {
    double percent = 0;
    const auto [stop, error] = std::from_chars(at, end, percent, std::chars_format::fixed);
    if (error != std::errc{} || !(percent >= 0.1 && percent <= 1000) || shares.size() == kMaxPercents ||
        (stop != end && *stop != ',')) {
      return std::nullopt;
    }
    shares.push_back(percent / 100);
    if (stop == end) {
      return shares;
    }
    at = stop + 1;
  }
}

const FlashEstimate* estimate_of(const model::Snapshot& snapshot, const std::string& device) {
  if (snapshot.flash) {
    for (const FlashEstimate& drive : snapshot.flash->drives) {
      if (std::find(drive.devices.begin(), drive.devices.end(), device) != drive.devices.end()) {
        return &drive;
      }
    }
  }
  return nullptr;
}

std::string amplification_text(const FlashEstimate& drive) { return amplification_text(drive, best_window(drive)); }

std::string amplification_text(const FlashEstimate& drive, FlashWindow window) {
  if (const auto silence = silence_of(drive, window)) {
    return none_modelled_text(drive, *silence);
  }
  const auto& likely = drive.likely[static_cast<std::size_t>(window)];
  if (!likely) {
    return none_modelled_text(drive, FlashSilence::wide_bounds);
  }
  const bool fitted = drive.overprovisioning.basis == model::OverprovisioningBasis::media_counter;
  return fmt::format("modelled {:.1f} ({:.1f} to {:.1f}), {} spare {}", likely->ratio, likely->lower, likely->upper,
                     percent(drive.overprovisioning.likely), fitted ? "fitted to its counter" : "assumed");
}

WhatIfAnswer what_if(const model::Snapshot& snapshot, const FlashEstimate& drive, const WhatIfQuestion& question) {
  WhatIfAnswer answer;
  answer.window = question.window.value_or(best_window(drive));
  answer.silence = silence_of(drive, answer.window);
  answer.text = amplification_text(drive, answer.window);
  if (const model::NvmeDrive* const counters = counters_of(snapshot, drive)) {
    add_counters(*counters, answer);
  }
  if (answer.silence) {
    return answer;
  }
  answer.likely = drive.likely[static_cast<std::size_t>(answer.window)];
  add_curve(drive, question, answer);
  add_others(drive, answer);
  add_assumptions(drive, answer);
  return answer;
}

}  // namespace ssdpulse::flash
