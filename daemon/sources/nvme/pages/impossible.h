// SPDX-License-Identifier: Apache-2.0
// What no page can contain: values that a standard or physics rules out. A drive that shows one has returned something
// else than its page, so nothing of it is accepted.
#pragma once

#include <optional>
#include <string>

#include "daemon/sources/nvme/pages/page.h"

namespace ssdpulse::nvme {

/// The first such value, in words; nothing if all are possible. Limits are what a drive could reach in a hundred years,
/// and temperatures between -100 and 200 degrees Celsius.
std::optional<std::string> find_impossible(const PageContent& content);

/// Drives leave anything in the fields of sensors that they do not have: without those out of range.
void drop_missing_sensors(PageContent& content);

}  // namespace ssdpulse::nvme
