// SPDX-License-Identifier: Apache-2.0
// Which NVMe drives does this host have, what can each report, and where would its write amplification come from?
#pragma once

#include <optional>
#include <ostream>
#include <string>
#include <vector>

namespace ssdpulse::terminal {

struct DriveLine {
  std::string controller;
  std::vector<std::string> namespaces;
  std::string firmware;
  std::vector<std::string> log_pages;  // that it provides
  std::string source;                  // of its write amplification; empty: unknown
  std::string reason;                  // why this source
  std::optional<std::string> failure;  // why it cannot be read; absent: it can
};

/// Of all drives; or why they could not be asked.
struct DriveList {
  std::vector<DriveLine> lines;
  std::string failure;  // empty: they were asked
};

/// Prints nothing if there is no drive.
void print_drives(const std::vector<DriveLine>& lines, std::ostream& out);

}  // namespace ssdpulse::terminal
