// SPDX-License-Identifier: Apache-2.0
// Volumes: the stage that determines what volumes and their members did in the last minute, and which floor of a stack
// adds the time. figures_between(): the same of any two readings. Pure.
#pragma once

#include <deque>
#include <memory>
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
  std::shared_ptr<const model::VolumeFigures> figures_;
};

}  // namespace ssdpulse::volumes
