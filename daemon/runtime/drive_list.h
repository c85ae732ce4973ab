// SPDX-License-Identifier: Apache-2.0
// Which NVMe drives does this host have, what can each tell, and where would its write amplification come from?
#pragma once

#include <ostream>

namespace ssdpulse::runtime {

/// Asks every live drive once, for as long as a drive may take that is well; says of those that cannot be read why.
/// Prints nothing on a host without NVMe drives.
void print_drives(std::ostream& out);

}  // namespace ssdpulse::runtime
