// SPDX-License-Identifier: Apache-2.0
// DriveLine: what `ssdpulse devices` shows of an NVMe drive: what it can report, and its source of write amplification.
#pragma once

#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "daemon/util/outside_text.h"

namespace ssdpulse::terminal {

struct DriveLine {
  std::string controller;
  std::vector<std::string> namespaces;
  util::OutsideText firmware;
  std::vector<std::string> log_pages;  // that it provides
  std::string source;                  // of its write amplification; empty: unknown
  std::string reason;                  // why this source
  std::optional<std::string> failure;  // why it cannot be read; absent: it can be
};

/// Of all drives; or why they could not be asked.
struct DriveList {
  std::vector<DriveLine> lines;
  std::string failure;  // empty: they were asked
};

/// Prints nothing if there is no drive.
void print_drives(const std::vector<DriveLine>& lines, std::ostream& out);

}  // namespace ssdpulse::terminal
