// SPDX-License-Identifier: Apache-2.0
// A log line as JSON, for collectors that parse each line (`--log.format json`).
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/util/log_field.h"

namespace ssdpulse::log {

/// {"time":"2026-01-31T23:59:59.123Z","level":"info","message":"...","fields":{"device":"sda"}}, without a line break.
/// `fields` is left out if there are none. Bytes that are not UTF-8 become U+FFFD.
std::string json_line(std::chrono::system_clock::time_point time, std::string_view level, std::string_view message,
                      const std::vector<Field>& fields);

}  // namespace ssdpulse::log
