// SPDX-License-Identifier: Apache-2.0
#include "daemon/siblings/sibling_stage.h"

#include <algorithm>
#include <set>
#include <utility>

#include "daemon/siblings/sibling_groups.h"

namespace ssdpulse::siblings {
namespace {

using model::SiblingFigures;
using model::SiblingGroup;
using model::SiblingRatio;

/// Of the fastest tenth of the I/Os: a drive whose I/Os come in bursts serves some at once.
constexpr double kMinFastestRatio = 1.25;
/// Of what its siblings were written lately; beyond it, and beyond a rate that no drive minds, it may well be slower.
constexpr double kMaxWrittenRatio = 3;
constexpr double kFewBytesPerSecond = 1 << 20;
/// Of a group: one in so many may be slower than the others.
constexpr std::size_t kOthersForEach = 3;
/// While a slower device cannot be compared, as the loads differ or it is idle, or chance may be why it is slower, it
/// remains what it was for so long.
constexpr std::chrono::minutes kProofLasts{3};

/// Devices below an array that is checked, rebuilt or reshaped.
std::set<std::string> disturbed_devices(const model::Tick& tick) {
  std::set<std::string> devices;
  if (tick.host) {
    std::set<std::string> arrays;
    for (const model::VolumeSignals& volume : tick.host->volumes) {
      if (volume.resync) {
        arrays.insert(volume.volume);
      }
    }
    for (const model::Membership& one : tick.inventory->memberships) {
      if (!arrays.empty() && arrays.contains(one.array)) {
        devices.insert(one.device);
      }
    }
  }
  return devices;
}

std::map<std::string, double> busy_ratios(const model::Tick& tick) {
  std::map<std::string, double> ratios;
  if (tick.before) {
    for (const model::DeviceSnapshot& device : tick.before->devices) {
      if (device.utilisation && device.utilisation->busy_ratio) {
        ratios[device.device->name] = *device.utilisation->busy_ratio;
      }
    }
  }
  return ratios;
}

bool was_written_more(const std::vector<const LoadWindow*>& windows, std::size_t member,
                      const std::vector<std::size_t>& siblings) {
  std::vector<double> others;
  for (const std::size_t sibling : siblings) {
    others.push_back(windows[sibling]->written_lately());
  }
  const auto middle = others.begin() + static_cast<std::ptrdiff_t>(others.size() / 2);
  std::nth_element(others.begin(), middle, others.end());
  return windows[member]->written_lately() > kMaxWrittenRatio * *middle + kFewBytesPerSecond;
}

}  // namespace

model::Findings Siblings::observe(const model::Tick& tick) {
  const auto disturbed = disturbed_devices(tick);
  const auto busy = busy_ratios(tick);
  const auto is_over = [&](std::optional<model::SteadyTime>& begin, std::chrono::seconds length) {
    begin = begin.value_or(tick.at);
    const bool over = tick.at - *begin >= length - std::chrono::milliseconds(500);
    begin = over ? tick.at : *begin;
    return over;
  };
  const bool stretch_over = is_over(stretch_begin_, LoadWindow::kStretch);
  const bool slice_over = is_over(slice_begin_, LoadWindow::kSlice);
  devices_.observe(tick, [&](std::size_t, const model::DeviceTick& device, LoadWindow& window) {
    const std::string& name = device.block.device->name;
    const auto ratio = busy.find(name);
    // Whether anything is rebuilt is not known until the host has been read.
    window.add(device, ratio == busy.end() ? std::nullopt : std::optional(ratio->second),
               !tick.host || disturbed.contains(name));
    if (stretch_over || slice_over) {
      window.end_stretch();
    }
    if (slice_over) {
      window.end_slice();
    }
  });
  if (slice_over) {
    compare_all(tick);
  }
  return {[figures = figures_](model::Snapshot& snapshot) { snapshot.siblings = figures; }};
}

void Siblings::compare_all(const model::Tick& tick) {
  std::erase_if(proofs_, [&](const auto& one) { return tick.at - one.second.last > kProofLasts; });
  auto figures = std::make_shared<SiblingFigures>(sibling_groups(tick));
  for (const SiblingGroup& group : figures->groups) {
    if (std::find(groups_.begin(), groups_.end(), group) == groups_.end()) {
      // Groups of several models have the same name.
      std::erase_if(proofs_, [&](const auto& one) {
        const auto& [name, operation, device] = one.first;
        return name == group.name &&
               std::find(group.members.begin(), group.members.end(), device) != group.members.end();
      });
    }
    for (const auto operation : {model::Operation::read, model::Operation::write}) {
      compare(group, operation, tick, *figures);
    }
  }
  groups_ = figures->groups;
  const bool any = !figures->groups.empty() || figures->groups_left_out > 0;
  figures_ = any ? std::move(figures) : nullptr;
}

void Siblings::compare(const SiblingGroup& group, model::Operation operation, const model::Tick& tick,
                       SiblingFigures& figures) {
  std::vector<const LoadWindow*> windows;
  for (const std::string& member : group.members) {
    windows.push_back(devices_.find(member));
  }
  const EqualLoad equal_load(windows, operation);
  const auto ratio_of = [&](std::size_t member) -> std::optional<SiblingRatio> {
    const Key key(group.name, operation, group.members[member]);
    if (windows[member]->disturbed()) {
      proofs_.erase(key);
      return std::nullopt;
    }
    const auto found = equal_load.ratio_of(member, min_members(group.kind) - 1);
    const auto proof = proofs_.find(key);
    // Another drive of that name has been seen for less than a window, and has no part in what was proved of the old
    // one.
    if (!found && windows[member]->slices().size() <= LoadWindow::kSlices) {
      proofs_.erase(key);
      return std::nullopt;
    }
    if (!found) {
      return proof == proofs_.end() ? std::nullopt : std::optional(proof->second.ratio);
    }
    SiblingRatio ratio{.device = group.members[member],
                       .operation = operation,
                       .group = group.name,
                       .kind = group.kind,
                       .ratio = found->change.ratio,
                       .lower = found->interval.lower,
                       .upper = found->interval.upper,
                       .median_seconds = found->median_seconds,
                       .sibling_seconds = found->sibling_seconds};
    for (const std::size_t sibling : found->siblings) {
      ratio.siblings.push_back(group.members[sibling]);
    }
    if (ratio.upper <= model::kSlowerThanSiblings || found->fastest_ratio < kMinFastestRatio ||
        was_written_more(windows, member, found->siblings)) {
      proofs_.erase(key);
    } else if (ratio.lower > model::kSlowerThanSiblings) {
      Proof& proven = proofs_.try_emplace(key, Proof{.first = tick.at}).first->second;
      proven.last = tick.at;
      proven.ratio = ratio;
    }
    return ratio;
  };
  std::vector<SiblingRatio> ratios;
  for (std::size_t member = 0; member < windows.size(); ++member) {
    if (auto ratio = ratio_of(member)) {
      ratios.push_back(std::move(*ratio));
    }
  }
  const auto proof_of = [&](const std::string& member) { return proofs_.find(Key(group.name, operation, member)); };
  const auto slower = std::count_if(group.members.begin(), group.members.end(),
                                    [&](const std::string& one) { return proof_of(one) != proofs_.end(); });
  for (SiblingRatio& ratio : ratios) {
    const auto proof = proof_of(ratio.device);
    ratio.slow = proof != proofs_.end() && proof->second.last - proof->second.first >= model::kSlowerFor &&
                 static_cast<std::size_t>(slower) * kOthersForEach <= group.members.size();
    std::erase_if(ratio.siblings,
                  [&](const std::string& one) { return !ratio.slow || proof_of(one) != proofs_.end(); });
  }
  figures.ratios.insert(figures.ratios.end(), std::make_move_iterator(ratios.begin()),
                        std::make_move_iterator(ratios.end()));
}

}  // namespace ssdpulse::siblings
