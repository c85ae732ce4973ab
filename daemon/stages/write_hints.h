// SPDX-License-Identifier: Apache-2.0
// WriteHints: the stage that reports how far a write's lifetime hint gets, and which writes the drive itself prefers.
#pragma once

#include "daemon/stages/stage.h"

namespace ssdpulse::stages {

class WriteHints final : public Stage {
 public:
  Findings observe(const Tick& tick) override;
};

}  // namespace ssdpulse::stages
