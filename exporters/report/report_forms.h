// SPDX-License-Identifier: Apache-2.0
// Report: what is reported about some disks, a comparison of each and the minutes behind it, as text, Markdown, JSON or
// HTML. Names of devices, models, settings and marks come from outside: each form shows them without bytes that it
// would interpret.
#pragma once

#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/base/outside_text.h"
#include "daemon/compare/comparison.h"
#include "daemon/model/write_ladder.h"

namespace ssdpulse::report {

struct DeviceReport {
  compare::Question question;
  compare::Comparison comparison;
};

struct Report {
  std::string host;
  model::WallTime made_at;
  util::OutsideText change;        // what lies between the windows: a mark or a setting; empty: it was not looked for
  std::vector<model::Mark> marks;  // in or between the windows
  std::vector<DeviceReport> devices;
  std::optional<model::PastLadder> ladder_before = {};  // absent: none was kept, or there is one window; likewise
  std::optional<model::PastLadder> ladder_after = {};
};

void print_text(const Report& report, std::ostream& out);
void print_markdown(const Report& report, std::ostream& out);
void print_json(const Report& report, std::ostream& out);

/// One page that needs nothing else: no script, no request. At most kMaxHtmlBytes; devices that do not fit are left
/// out.
void print_html(const Report& report, std::ostream& out);
inline constexpr std::size_t kMaxHtmlBytes = 300'000;

// The figures of a report as text for people. Only for the files of this folder.

using compare::Change;
using compare::Comparison;
using compare::LoadRow;
using compare::Row;
using compare::Unit;

/// "1.23 ms", "12.3 %", "1.8 MB/s". Absent: "no data".
std::string value_text(std::optional<double> value, Unit unit);

/// "-12 % (-18 to -5)", "3.6 times (2.8 to 4.7)": the change and its interval.
std::string change_text(const std::optional<Change>& change);

/// "1.2M", "340 GB" for the rows about wear.
std::string count_text(const Row& row, double count);

/// "2026-11-23 09:00 to 17:00 UTC"
std::string window_text(const model::Window& window);
/// The same with how long was measured of it: "..., 8 h measured".
std::string measured_text(const model::Window& window, double hours);
/// "2026-11-23 09:00 UTC"
std::string minute_text(model::WallTime time);

/// Of a device; the first row is the heading.
using Table = std::vector<std::vector<std::string>>;
Table verdict_table(const Comparison& comparison);
Table load_table(const Comparison& comparison);

/// The remarks on rows, below the table: "reads p99: cannot tell: ... ".
std::vector<std::string> row_remarks(const Comparison& comparison);

/// Of the whole host (report_ladder.cpp). Empty: no write ladder was kept.
Table ladder_table(const Report& report);
/// Why ratios are missing, below the table.
std::vector<std::string> ladder_remarks(const Report& report);
/// {"before": ..., "after": ...}
std::string ladder_json(const Report& report);

/// "better 3, same 2, cannot tell 1"
std::string summary_text(const Comparison& comparison);

/// "nvme0n1 (Model, serial S)"
util::OutsideText device_text(const model::PastDevice& device);
/// "2026-11-23 09:00 UTC  nvme0n1  scheduler: none -> mq-deadline"
util::OutsideText setting_text(const model::SettingChange& change);

}  // namespace ssdpulse::report
