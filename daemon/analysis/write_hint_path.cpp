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

}  // namespace ssdpulse::analysis
