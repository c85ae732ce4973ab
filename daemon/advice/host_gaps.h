// SPDX-License-Identifier: Apache-2.0
// host_gaps(): what a host lacks that its configuration counts on. For `ssdpulse check-config`: warnings, not errors,
// as the file may be checked before the host is ready, or on another one. Not pure: asks for the directory above the
// history's, in a child process, for up to util::kPerQuestion.
#pragma once

#include <string>
#include <vector>

#include "daemon/config/config.h"
#include "daemon/model/device.h"

namespace ssdpulse::advice {

/// One line each, beginning with the key. `inventory`: read with the filter of `config`. Default patterns are not
/// checked: most hosts have no zram.
std::vector<std::string> host_gaps(const config::Config& config, const model::Inventory& inventory);

}  // namespace ssdpulse::advice
