// SPDX-License-Identifier: Apache-2.0
// all_stages(): one new object of each analysis that the daemon runs.
#pragma once

#include <memory>
#include <vector>

#include "daemon/model/stage.h"

namespace ssdpulse::runtime {

std::vector<std::unique_ptr<model::Stage>> all_stages();

}  // namespace ssdpulse::runtime
