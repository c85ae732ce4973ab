// SPDX-License-Identifier: Apache-2.0
// Siblings: the stage that compares drives that ought to be alike at equal load, and names the slow one.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "daemon/model/sibling_latency.h"
#include "daemon/model/stage.h"
#include "daemon/siblings/equal_load.h"

namespace ssdpulse::siblings {

/// A device is slow if the lower bound of its ratio has been above kSlowerThanSiblings for kSlowerFor, its fastest
/// tenth is slower, too, and it has not been written to much more than its siblings, which would be worth some garbage
/// collection. If more than a third of a group is slower than the others, nobody knows which are as they ought to be,
/// and none is named; nor is one that is, or within the window was, part of an array that is checked or rebuilt.
class Siblings final : public model::Stage {
 public:
  model::Findings observe(const model::Tick& tick) override;

 private:
  /// By group, operation and device.
  using Key = std::tuple<std::string, model::Operation, std::string>;

  void compare_all(const model::Tick& tick);
  void compare(const model::SiblingGroup& group, model::Operation operation, const model::Tick& tick,
               model::SiblingFigures& figures);

  /// All the time in between, no comparison said otherwise.
  struct Proof {
    model::SteadyTime first;
    model::SteadyTime last = {};
    model::SiblingRatio ratio = {};  // the last one
  };

  model::PerDevice<LoadWindow> devices_;
  std::optional<model::SteadyTime> stretch_begin_;
  std::optional<model::SteadyTime> slice_begin_;
  std::vector<model::SiblingGroup> groups_;  // as compared last
  std::map<Key, Proof> proofs_;              // of those that are slower
  std::shared_ptr<const model::SiblingFigures> figures_;
};

}  // namespace ssdpulse::siblings
