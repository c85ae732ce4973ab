// SPDX-License-Identifier: Apache-2.0
// tenant_title(): what sentences and tables for people call a tenant. Where programs read it, it keeps its name.
#pragma once

#include <string>
#include <string_view>

#include "daemon/model/tenants.h"

namespace ssdpulse::model {

/// "/" says nothing to people: most of the root's I/O is that of units without I/O accounting.
inline std::string tenant_title(std::string_view name) {
  return name == kRootTenant ? "the system (units without I/O accounting)" : std::string(name);
}

}  // namespace ssdpulse::model
