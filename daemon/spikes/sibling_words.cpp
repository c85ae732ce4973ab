// SPDX-License-Identifier: Apache-2.0
#include "daemon/spikes/sibling_words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "daemon/base/figure_text.h"
#include "daemon/model/layers.h"
#include "daemon/model/sibling_latency.h"

namespace ssdpulse::spikes {
namespace {

using model::NvmeField;
using model::SiblingKind;
using model::SiblingRatio;

constexpr double kAlikeCelsius = 5;
constexpr double kAlikeWear = 0.1;

/// "md0", "vg0-data (dm-3)"
std::string group_title(const model::Snapshot& now, const std::string& group) {
  const model::Layer* layer = model::layer_of(now.layers, group);
  return layer == nullptr || layer->title.empty() || layer->title == group
             ? group
             : fmt::format("{} ({})", util::for_json(layer->title), group);
}

std::string than_words(const model::Snapshot& now, const SiblingRatio& one) {
  const auto& groups = now.siblings->groups;
  const bool all = std::none_of(groups.begin(), groups.end(), [&](const model::SiblingGroup& group) {
    return group.name == one.group && group.members.size() > 1 + one.siblings.size();
  });
  switch (one.kind) {
    case SiblingKind::array:
      return fmt::format(
          "{} siblings in {}",
          all ? fmt::format("its {}", one.siblings.size()) : fmt::format("{} of its", one.siblings.size()),
          group_title(now, one.group));
    case SiblingKind::paths:
      return fmt::format("{} other paths of {}", one.siblings.size(), group_title(now, one.group));
    case SiblingKind::model:
      return fmt::format("{} others of its model", one.siblings.size());
  }
  return "";
}

util::OutsideText firmware_of(const model::Snapshot& now, const std::string& device) {
  const auto found =
      std::find_if(now.devices.begin(), now.devices.end(), [&](const auto& one) { return one.device->name == device; });
  return found == now.devices.end() ? util::OutsideText() : found->device->firmware;
}

std::optional<double> field_of(const model::Snapshot& now, const std::string& device, NvmeField field,
                               std::string_view label) {
  if (const model::NvmeDrive* drive = model::drive_of(now, device)) {
    for (const model::NvmeValue& value : drive->values) {
      if (value.field == field && value.endurance_group == 0 && value.label == label) {
        return value.value;
      }
    }
  }
  return std::nullopt;
}

/// A figure of the device, and of the median of its siblings.
struct Pair {
  double own;
  double others;
};
std::optional<Pair> pair_of(const model::Snapshot& now, const SiblingRatio& one, NvmeField field,
                            std::string_view label = "") {
  std::vector<double> others;
  for (const std::string& sibling : one.siblings) {
    if (const auto value = field_of(now, sibling, field, label)) {
      others.push_back(*value);
    }
  }
  const auto own = field_of(now, one.device, field, label);
  if (!own || others.empty() || others.size() < one.siblings.size()) {
    return std::nullopt;
  }
  const auto middle = others.begin() + static_cast<std::ptrdiff_t>(others.size() / 2);
  std::nth_element(others.begin(), middle, others.end());
  return Pair{*own, *middle};
}

/// What of the drive is as of its siblings, and what is not. What is not known is in neither.
struct Differences {
  std::vector<std::string> alike;
  std::vector<std::string> unlike;
};

void compare_firmware(const model::Snapshot& now, const SiblingRatio& one, Differences& differences) {
  std::set<util::OutsideText> others;
  for (const std::string& sibling : one.siblings) {
    others.insert(firmware_of(now, sibling));
  }
  const util::OutsideText own = firmware_of(now, one.device);
  if (own.empty() || others.size() != 1 || others.begin()->empty()) {
    return;
  }
  if (own == *others.begin()) {
    differences.alike.emplace_back("firmware");
  } else {
    differences.unlike.push_back(
        fmt::format("its firmware is {}, theirs {}", util::for_json(own), util::for_json(*others.begin())));
  }
}

Differences differences_of(const model::Snapshot& now, const SiblingRatio& one) {
  Differences differences;
  compare_firmware(now, one, differences);
  if (const auto celsius = pair_of(now, one, NvmeField::temperature_celsius, "composite")) {
    const double warmer = celsius->own - celsius->others;
    if (std::fabs(warmer) <= kAlikeCelsius) {
      differences.alike.emplace_back("temperature");
    } else {
      differences.unlike.push_back(
          fmt::format("it is {:.0f} °C {}", std::fabs(warmer), warmer > 0 ? "warmer" : "cooler"));
    }
  }
  if (const auto used = pair_of(now, one, NvmeField::percentage_used_ratio)) {
    if (std::fabs(used->own - used->others) <= kAlikeWear) {
      differences.alike.emplace_back("wear");
    } else {
      differences.unlike.push_back(
          fmt::format("{:.0f} % of its life is used up, {:.0f} % of theirs", 100 * used->own, 100 * used->others));
    }
  }
  if (const auto errors = pair_of(now, one, NvmeField::media_errors); errors && errors->own > errors->others) {
    differences.unlike.push_back(
        "it has " + util::format_count(static_cast<std::uint64_t>(errors->own), "media error", "media errors"));
  }
  return differences;
}

/// "; firmware, temperature and wear are the same, but it is 14 °C warmer"
std::string differences_words(const Differences& differences) {
  const auto& alike = differences.alike;
  std::string words;
  if (!alike.empty()) {
    const auto but_last = std::vector(alike.begin(), alike.end() - 1);
    words = fmt::format("{}{}{} {} the same", fmt::join(but_last, ", "), but_last.empty() ? "" : " and ", alike.back(),
                        but_last.empty() ? "is" : "are");
  }
  if (!differences.unlike.empty()) {
    words += fmt::format("{}{}", words.empty() ? "" : ", but ", fmt::join(differences.unlike, ", "));
  }
  return words.empty() ? "" : "; " + words;
}

}  // namespace

std::string sibling_words(const model::Snapshot& now, const std::string& device) {
  std::vector<const SiblingRatio*> slow;
  if (now.siblings) {
    for (const SiblingRatio& one : now.siblings->ratios) {
      if (one.slow && !one.siblings.empty() && (device.empty() || one.device == device)) {
        slow.push_back(&one);
      }
    }
  }
  if (slow.empty()) {
    return "";
  }
  // An array says more than a model, and the operation that is slowed most more than the other.
  std::stable_sort(slow.begin(), slow.end(), [](const SiblingRatio* a, const SiblingRatio* b) {
    return std::pair(a->kind, -a->ratio) < std::pair(b->kind, -b->ratio);
  });
  const SiblingRatio& worst = *slow.front();
  std::string words =
      fmt::format(" {} is {} slower than {} at equal load ({} take {}, theirs {}){}.", worst.device,
                  util::format_factor(worst.ratio), than_words(now, worst),
                  worst.operation == model::Operation::read ? "reads" : "writes",
                  util::format_latency(worst.median_seconds), util::format_latency(worst.sibling_seconds),
                  worst.kind == SiblingKind::paths ? "" : differences_words(differences_of(now, worst)));
  std::set<std::string> said{worst.device};
  for (const SiblingRatio* one : slow) {
    if (one->group == worst.group && said.insert(one->device).second) {
      words += fmt::format(" So is {} ({}).", one->device, util::format_factor(one->ratio));
    }
  }
  return words;
}

}  // namespace ssdpulse::spikes
