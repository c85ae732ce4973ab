// SPDX-License-Identifier: Apache-2.0
#include "daemon/analysis/write_hint_path.h"

namespace ssdpulse::analysis {
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

std::string in_words(model::HintReach kernel) {
  switch (kernel) {
    case model::HintReach::dropped:
      return "the kernel drops them";
    case model::HintReach::file_system_drops_buffered:
      return "reach the block layer, but ext4 drops those of buffered writes";
    case model::HintReach::block_layer:
      return "reach the block layer";
    case model::HintReach::drive:
      return "reach the drive as a stream when the device itself is written directly";
  }
  return "";
}

std::string in_words(model::DriveSeparation drive) {
  switch (drive) {
    case model::DriveSeparation::none:
      return "has neither streams nor FDP";
    case model::DriveSeparation::directives:
      return "has directives, and may have streams";
    case model::DriveSeparation::fdp:
      return "has FDP";
    case model::DriveSeparation::unknown:
      return "unknown";
  }
  return "";
}

}  // namespace ssdpulse::analysis
