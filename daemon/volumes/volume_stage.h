// SPDX-License-Identifier: Apache-2.0
// Volumes: the stage that determines what volumes and their members did in the last minute, which floor of a stack adds
// the time, and which does so all of a sudden. figures_between(): the first two, of any two readings. Pure.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "daemon/model/layers.h"
#include "daemon/model/stage.h"
#include "daemon/model/volume_io.h"

namespace ssdpulse::volumes {

using Bios = std::vector<std::shared_ptr<const model::BioIo>>;

/// `layers`: those of all the time in between. Both sorted by device. A device that is not in both, or whose counts
/// began again, is left out, and so is every floor that it is part of.
model::VolumeFigures figures_between(const Bios& before, const Bios& now, double seconds,
                                     const std::vector<model::Layer>& layers);

/// A floor is slow if, in each of kProofs intervals in a row, the time that is its own is at least kMinOwnSeconds,
/// half of what its bios take, and kTimesUsual what is usual for it. Something that happens once, such as a volume that
/// is suspended for a moment, is in one interval only. What is usual is the mean of the intervals of kLearningTime in
/// which it was not slow; one that stays slow for kUsualAfter is usual from then on.
class SlowFloors {
 public:
  static constexpr std::size_t kProofs = 2;
  static constexpr double kMinOwnSeconds = 0.001;
  static constexpr double kMinShare = 0.5;
  static constexpr double kTimesUsual = 4;
  static constexpr std::chrono::seconds kMinLearned{60};
  static constexpr std::chrono::minutes kLearningTime{10};
  static constexpr std::chrono::hours kUsualAfter{1};

  /// Call it for each interval in turn, with all floors that are known in it.
  std::vector<model::SlowFloor> observe(const std::vector<model::FloorTime>& floors, std::chrono::seconds interval);
  void forget() { known_.clear(); }

 private:
  struct Known {
    double usual_own_seconds = 0;
    std::chrono::seconds learned{};
    std::chrono::seconds slow_for{};
    std::size_t proofs = 0;  // intervals in a row in which it was slow
  };
  std::map<std::pair<std::vector<std::string>, model::Operation>, Known> known_;  // by volumes
};

class Volumes final : public model::Stage {
 public:
  model::Findings observe(const model::Tick& tick) override;

 private:
  struct Mark {
    model::SteadyTime at;
    Bios bios;
  };
  std::deque<Mark> marks_;            // since the layers changed last
  std::vector<model::Layer> layers_;  // of the last tick
  SlowFloors slow_;
  std::shared_ptr<const model::VolumeFigures> figures_;
};

}  // namespace ssdpulse::volumes
