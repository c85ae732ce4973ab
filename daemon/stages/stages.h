// SPDX-License-Identifier: Apache-2.0
// Which analyses does the daemon run?
#pragma once

#include <memory>
#include <vector>

#include "daemon/stages/stage.h"

namespace ssdpulse::stages {

std::vector<std::unique_ptr<Stage>> all_stages();

}  // namespace ssdpulse::stages
