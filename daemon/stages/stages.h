// SPDX-License-Identifier: Apache-2.0
// all_stages(): one new object of each analysis that the daemon runs.
#pragma once

#include <memory>
#include <vector>

#include "daemon/stages/stage.h"

namespace ssdpulse::stages {

std::vector<std::unique_ptr<Stage>> all_stages();

}  // namespace ssdpulse::stages
