// SPDX-License-Identifier: Apache-2.0
#include "daemon/block/write_hints.h"

namespace ssdpulse::block {
namespace {

constexpr std::uint16_t kDirectives = 1U << 5U;              // OACS
constexpr std::uint32_t kFlexibleDataPlacement = 1U << 19U;  // CTRATT

}  // namespace

model::WriteHintPath write_hint_path(model::HintReach kernel, const model::Device& device,
                                     const model::NvmeIdentity* drive) {
  model::WriteHintPath path;
  path.kernel = device.write_streams > 0 ? model::HintReach::drive : kernel;
  if (drive != nullptr) {
    path.drive = (drive->controller_attributes & kFlexibleDataPlacement) != 0 ? model::DriveSeparation::fdp
                 : (drive->admin_commands & kDirectives) != 0                 ? model::DriveSeparation::directives
                                                                              : model::DriveSeparation::none;
  }
  return path;
}

model::Findings WriteHints::observe(const model::Tick& tick) {
  std::vector<model::WriteHintPath> paths;
  std::map<std::string, model::WritePreference> preferences;
  for (const model::DeviceTick& entry : tick.devices) {
    const model::Device& device = *entry.block.device;
    // Until a drive has answered, all that is known about it comes from sysfs.
    const bool has_answered = entry.drive && entry.drive->identity->version != 0;
    const model::NvmeIdentity* identity = has_answered ? entry.drive->identity.get() : nullptr;
    paths.push_back(write_hint_path(tick.hint_reach, device, identity));
    if (has_answered && entry.drive_namespace->write_granularity_blocks > 0) {
      preferences[device.name] = {entry.drive_namespace->write_alignment_blocks * device.logical_block_bytes,
                                  entry.drive_namespace->write_granularity_blocks * device.logical_block_bytes};
    }
  }
  model::Findings findings;
  findings.values = [paths = std::move(paths)](model::Snapshot& snapshot) {
    for (std::size_t i = 0; i < paths.size(); ++i) {
      snapshot.devices[i].hint_path = paths[i];
    }
  };
  findings.effects.write_preferences = std::move(preferences);
  return findings;
}

}  // namespace ssdpulse::block
