// SPDX-License-Identifier: Apache-2.0
// Spikes: the stage that finds latency spikes, with one analysis for each device. Each spike becomes a history row and
// counters, each incident a line of the log, with most of its spikes as details; a drive whose log pages would show the
// cause is polled early.
#pragma once

#include <string>
#include <utility>

#include "daemon/analysis/latency_spikes/device_spikes.h"
#include "daemon/analysis/tenants/tenant_steps.h"
#include "daemon/stages/incident_log.h"
#include "daemon/stages/per_device.h"
#include "daemon/stages/spike_log.h"
#include "daemon/stages/stage.h"

namespace ssdpulse::stages {

class Spikes final : public Stage {
 public:
  Findings observe(const Tick& tick) override;

 private:
  struct Device {
    explicit Device(std::string name) : spikes(std::move(name)) {}
    analysis::DeviceSpikes spikes;
    analysis::TenantSteps steps;
  };
  static analysis::SpikeTick spike_tick(const DeviceTick& device, Device& known, const Tick& tick);

  PerDevice<Device> devices_;
  IncidentLog incident_log_;
  SpikeLog log_;
};

}  // namespace ssdpulse::stages
