// SPDX-License-Identifier: Apache-2.0
// Measured as JSON: the answer of /api/v1/measured. An object with the names of Measured::visit() and below; what is
// absent is left out, and what a reader does not know is ignored.
#pragma once

#include <string>
#include <string_view>

#include "daemon/audit/measured.h"
#include "daemon/util/result.h"

namespace ssdpulse::audit {

std::string measured_json(const Measured& measured);

/// Whoever sent the text is not trusted: it has at most kMaxMeasuredBytes, and at most kMaxMeasuredEntries devices,
/// drives or mounts; names of devices, drives and causes are plain (util::is_plain_name()). The error says which field
/// is wrong, in words of ours.
inline constexpr std::size_t kMaxMeasuredBytes = 16U << 20U;
inline constexpr std::size_t kMaxMeasuredEntries = 4096;
util::Result<Measured> parse_measured(std::string_view json);

}  // namespace ssdpulse::audit
