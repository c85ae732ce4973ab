// SPDX-License-Identifier: Apache-2.0
// Findings that a running daemon and a host without one share: the remedy, and what it costs, is written only once.
#pragma once

#include <string>

#include "daemon/doctor/check.h"

namespace ssdpulse::doctor {

/// The kernel does not stamp the requests of this device.
model::Finding not_stamped(const std::string& device);

/// The kernel shows no addresses of its functions. `found`, `why` and `change`: in the words of the caller.
model::Finding no_kernel_symbols(std::string found, std::string why, std::string change);

}  // namespace ssdpulse::doctor
