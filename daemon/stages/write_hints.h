// SPDX-License-Identifier: Apache-2.0
// Where does the lifetime hint of a write end, and which writes does the drive itself prefer?
#pragma once

#include "daemon/stages/stage.h"

namespace ssdpulse::stages {

class WriteHints final : public Stage {
 public:
  Findings observe(const Tick& tick) override;
};

}  // namespace ssdpulse::stages
