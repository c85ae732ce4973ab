// SPDX-License-Identifier: Apache-2.0
#include "daemon/stages/stages.h"

#include "daemon/stages/attribution.h"
#include "daemon/stages/device_events.h"
#include "daemon/stages/device_minutes.h"
#include "daemon/stages/discards.h"
#include "daemon/stages/drift.h"
#include "daemon/stages/host_waits.h"
#include "daemon/stages/losses.h"
#include "daemon/stages/own_cost.h"
#include "daemon/stages/setting_changes.h"
#include "daemon/stages/spikes.h"
#include "daemon/stages/utilisation.h"
#include "daemon/stages/write_amplification.h"
#include "daemon/stages/write_hints.h"

namespace ssdpulse::stages {

std::vector<std::unique_ptr<Stage>> all_stages() {
  std::vector<std::unique_ptr<Stage>> stages;
  stages.push_back(std::make_unique<Drift>());
  stages.push_back(std::make_unique<Discards>());
  stages.push_back(std::make_unique<WriteHints>());
  stages.push_back(std::make_unique<WriteAmplification>());
  stages.push_back(std::make_unique<Attribution>());
  stages.push_back(std::make_unique<Spikes>());
  stages.push_back(std::make_unique<HostWaits>());
  stages.push_back(std::make_unique<Utilisation>());
  stages.push_back(std::make_unique<Losses>());
  stages.push_back(std::make_unique<OwnCost>());
  stages.push_back(std::make_unique<DeviceEvents>());
  stages.push_back(std::make_unique<DeviceMinutes>());
  stages.push_back(std::make_unique<SettingChanges>());
  return stages;
}

}  // namespace ssdpulse::stages
