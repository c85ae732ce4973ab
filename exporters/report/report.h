// SPDX-License-Identifier: Apache-2.0
// What is reported about some disks: a comparison of each, and the minutes behind it. Values in, bytes out.
//
// Names of devices, models, settings and marks come from outside: each form shows them without bytes that it would
// interpret.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "daemon/analysis/comparison/comparison.h"

namespace ssdpulse::report {

struct DeviceReport {
  analysis::comparison::Question question;
  analysis::comparison::Comparison comparison;
};

struct Report {
  std::string host;
  model::WallTime made_at;
  std::string change;              // what lies between the windows: a mark or a setting; empty: windows were named
  std::vector<model::Mark> marks;  // in or between the windows
  std::vector<DeviceReport> devices;
};

void print_text(const Report& report, std::ostream& out);
void print_markdown(const Report& report, std::ostream& out);
void print_json(const Report& report, std::ostream& out);

/// One page that needs nothing else: no script, no request. At most kMaxHtmlBytes; devices that do not fit are left
/// out.
void print_html(const Report& report, std::ostream& out);
inline constexpr std::size_t kMaxHtmlBytes = 300'000;

}  // namespace ssdpulse::report
