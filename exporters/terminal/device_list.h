// SPDX-License-Identifier: Apache-2.0
// Tables of `ssdpulse devices`, for people: which block devices of this host would be measured, which not, and why.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "daemon/model/device.h"
#include "daemon/model/device_identity.h"
#include "daemon/model/tenants.h"
#include "daemon/model/write_hint_path.h"

namespace ssdpulse::terminal {

/// Among all but stacked and empty devices.
std::vector<model::IdentityClash> reported_clashes(const model::Inventory& inventory);

void print_devices(const model::Inventory& inventory, std::ostream& out);

/// Where the write hints of a device end.
struct HintLine {
  std::string device;
  model::WriteHintPath path;
};

/// Prints nothing if there is no device.
void print_hint_paths(const std::vector<HintLine>& lines, std::ostream& out);

/// Prints nothing if I/O is accounted below the root, or nothing is known.
void print_io_accounting(model::IoAccounting accounting, std::ostream& out);

}  // namespace ssdpulse::terminal
