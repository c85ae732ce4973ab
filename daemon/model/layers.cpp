// SPDX-License-Identifier: Apache-2.0
#include "daemon/model/layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "daemon/model/device.h"
#include "daemon/model/host_signals.h"

namespace ssdpulse::model {
namespace {

template <typename Named>
const Named* named_in(const std::vector<Named>& sorted, const std::string& name) {
  const auto found = std::lower_bound(sorted.begin(), sorted.end(), name,
                                      [](const Named& one, const std::string& other) { return one.name < other; });
  return found == sorted.end() || found->name != name ? nullptr : &*found;
}

class StackWalk {
 public:
  StackWalk(const std::vector<Layer>& layers, const std::vector<Volume>& volumes)
      : layers_(layers), volumes_(volumes) {}

  std::vector<StackPlace> walk(const std::vector<std::string>& tops) {
    for (const std::string& top : tops) {
      if (places_.size() == kMaxStackPlaces) {
        places_.back().cut = true;
        break;
      }
      add(top, 0);
    }
    return std::move(places_);
  }

 private:
  void add(const std::string& name, std::size_t floor) {
    const std::size_t at = places_.size();
    places_.push_back({name, kind_of(name), floor});
    if (const auto [first, is_new] = first_.emplace(name, at); !is_new) {
      places_[first->second].shared = places_[at].shared = true;
      return;
    }
    for (const std::string& below : directly_below(name)) {
      if (floor + 1 == kMaxFloors || places_.size() == kMaxStackPlaces) {
        places_[at].cut = true;
        return;
      }
      add(below, floor + 1);
    }
  }

  [[nodiscard]] LayerKind kind_of(const std::string& name) const {
    if (const Layer* layer = layer_of(layers_, name)) {
      return layer->kind;
    }
    const Volume* volume = named_in(volumes_, name);
    return volume == nullptr ? LayerKind::other : volume->device == name ? LayerKind::disk : LayerKind::partition;
  }

  [[nodiscard]] std::vector<std::string> directly_below(const std::string& name) const {
    if (const Layer* layer = layer_of(layers_, name)) {
      return layer->members;
    }
    const Volume* volume = named_in(volumes_, name);
    return volume == nullptr || volume->device == name ? std::vector<std::string>() : std::vector{volume->device};
  }

  const std::vector<Layer>& layers_;
  const std::vector<Volume>& volumes_;
  std::vector<StackPlace> places_;
  std::map<std::string, std::size_t> first_;  // where each name is listed first
};

}  // namespace

const Layer* layer_of(const std::vector<Layer>& layers, const std::string& name) { return named_in(layers, name); }

std::vector<StackPlace> places_below(const std::vector<std::string>& tops, const std::vector<Layer>& layers,
                                     const std::vector<Volume>& volumes) {
  return StackWalk(layers, volumes).walk(tops);
}

Stacks stacks_of(const std::vector<Filesystem>& filesystems, const std::vector<Layer>& layers,
                 const std::vector<Volume>& volumes, std::size_t limit) {
  std::map<std::pair<util::OutsideText, std::string>, const Filesystem*> mounts;  // each is listed once for each disk
  std::set<std::string> carriers;
  for (const Filesystem& filesystem : filesystems) {
    mounts.emplace(std::pair(filesystem.mountpoint, filesystem.number), &filesystem);
    carriers.insert(filesystem.volumes.begin(), filesystem.volumes.end());
  }
  for (const Layer& layer : layers) {
    carriers.insert(layer.members.begin(), layer.members.end());
  }
  Stacks all;
  const auto add = [&](const util::OutsideText& mountpoint, const util::OutsideText& fstype,
                       const std::vector<std::string>& tops) {
    if (all.stacks.size() < limit) {
      all.stacks.push_back({mountpoint, fstype, places_below(tops, layers, volumes)});
    } else {
      ++all.left_out;
    }
  };
  for (const auto& [key, mount] : mounts) {
    add(mount->mountpoint, mount->fstype, mount->volumes);
  }
  for (const Layer& layer : layers) {
    if (!carriers.contains(layer.name)) {
      add({}, {}, {layer.name});
    }
  }
  return all;
}

HealthWords health_words(const VolumeSignals& signals) {
  constexpr auto kBadStates = std::to_array<std::string_view>({"inactive", "broken"});
  constexpr auto kUnusualStates = std::to_array<std::string_view>({"clear", "readonly"});
  HealthWords words;
  const auto say = [&](const std::string& text, bool bad) {
    words.text += (words.text.empty() ? "" : "; ") + text;
    words.bad = words.bad || bad;
  };
  const auto is_one_of = [&](const auto& states) {
    return std::find(states.begin(), states.end(), signals.state) != states.end();
  };
  if (signals.suspended) {
    say("suspended", true);
  }
  if (is_one_of(kBadStates) || is_one_of(kUnusualStates)) {
    say(signals.state, is_one_of(kBadStates));
  }
  if (signals.missing_members.value_or(0) > 0) {
    say(*signals.missing_members == 1 ? "1 member is missing"
                                      : fmt::format("{} members are missing", *signals.missing_members),
        true);
  }
  if (signals.resync) {
    say(signals.resync->progress_ratio
            ? fmt::format("{}, {:.0f} % done", signals.resync->action, 100 * *signals.resync->progress_ratio)
            : signals.resync->action,
        false);
  }
  return words;
}

}  // namespace ssdpulse::model
