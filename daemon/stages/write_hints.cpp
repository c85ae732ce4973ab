// SPDX-License-Identifier: Apache-2.0
#include "daemon/stages/write_hints.h"

#include "daemon/analysis/write_hint_path.h"

namespace ssdpulse::stages {

Findings WriteHints::observe(const Tick& tick) {
  std::vector<model::WriteHintPath> paths;
  std::map<std::string, model::WritePreference> preferences;
  for (const DeviceTick& entry : tick.devices) {
    const model::Device& device = *entry.block.device;
    // Until a drive has answered, all that is known about it comes from sysfs.
    const bool has_answered = entry.drive && entry.drive->identity->version != 0;
    const model::NvmeIdentity* identity = has_answered ? entry.drive->identity.get() : nullptr;
    paths.push_back(analysis::write_hint_path(tick.hint_reach, device, identity));
    if (has_answered && entry.drive_namespace->write_granularity_blocks > 0) {
      preferences[device.name] = {entry.drive_namespace->write_alignment_blocks * device.logical_block_bytes,
                                  entry.drive_namespace->write_granularity_blocks * device.logical_block_bytes};
    }
  }
  Findings findings;
  findings.values = [paths = std::move(paths)](model::Snapshot& snapshot) {
    for (std::size_t i = 0; i < paths.size(); ++i) {
      snapshot.devices[i].hint_path = paths[i];
    }
  };
  findings.effects.write_preferences = std::move(preferences);
  return findings;
}

}  // namespace ssdpulse::stages
