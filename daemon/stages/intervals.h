// SPDX-License-Identifier: Apache-2.0
// Intervals: what each device did since the tick before. Computed once, for all that examine it.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "daemon/model/clock.h"
#include "daemon/model/snapshot.h"
#include "daemon/stages/tick.h"

namespace ssdpulse::stages {

class Intervals {
 public:
  /// Sets DeviceTick::interval of each device. Once for each tick.
  void give(Tick& tick);

 private:
  std::map<std::string, std::shared_ptr<const model::DeviceIo>> before_;  // of the devices of the last tick
  model::SteadyTime at_;
};

}  // namespace ssdpulse::stages
