// SPDX-License-Identifier: Apache-2.0
#include "daemon/runtime/all_stages.h"

#include "daemon/block/accounting_drift.h"
#include "daemon/block/device_events.h"
#include "daemon/block/own_cost.h"
#include "daemon/block/utilisation.h"
#include "daemon/block/write_hints.h"
#include "daemon/discards/discard_stage.h"
#include "daemon/history/device_minutes.h"
#include "daemon/history/ladder_minutes.h"
#include "daemon/history/setting_changes.h"
#include "daemon/siblings/sibling_stage.h"
#include "daemon/spikes/host_waits.h"
#include "daemon/spikes/spike_stage.h"
#include "daemon/tenants/attribution_stage.h"
#include "daemon/volumes/volume_stage.h"
#include "daemon/wear/write_amplification.h"

namespace ssdpulse::runtime {

std::vector<std::unique_ptr<model::Stage>> all_stages() {
  std::vector<std::unique_ptr<model::Stage>> stages;
  stages.push_back(std::make_unique<block::Drift>());
  stages.push_back(std::make_unique<discards::Discards>());
  stages.push_back(std::make_unique<block::WriteHints>());
  stages.push_back(std::make_unique<wear::WriteAmplification>());
  stages.push_back(std::make_unique<tenants::Attribution>());
  stages.push_back(std::make_unique<spikes::Spikes>());
  stages.push_back(std::make_unique<spikes::HostWaitStage>());
  stages.push_back(std::make_unique<block::Utilisation>());
  stages.push_back(std::make_unique<block::Losses>());
  stages.push_back(std::make_unique<volumes::Volumes>());
  stages.push_back(std::make_unique<siblings::Siblings>());
  stages.push_back(std::make_unique<block::OwnCost>());
  stages.push_back(std::make_unique<block::DeviceEvents>());
  stages.push_back(std::make_unique<history::DeviceMinutes>());
  stages.push_back(std::make_unique<history::LadderMinutes>());
  stages.push_back(std::make_unique<history::SettingChanges>());
  return stages;
}

}  // namespace ssdpulse::runtime
