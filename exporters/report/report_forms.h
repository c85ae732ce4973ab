// SPDX-License-Identifier: Apache-2.0
// Report: what is reported about some disks, a comparison of each and the minutes behind it, as text, Markdown, JSON or
// HTML. Names of devices, models, settings and marks come from outside: each form shows them without bytes that it
// would interpret.
#pragma once

#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/base/outside_text.h"
#include "daemon/compare/comparison.h"
#include "daemon/model/write_ladder.h"

namespace ssdpulse::report {

/// A window between the two: while a command ran.
struct During {
  compare::Side side;
  compare::Comparison comparison;  // with the window before
};

struct DeviceReport {
  compare::Question question;
  compare::Comparison comparison;
  std::optional<During> during = {};
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

/// What comes first is the answer; then one picture, at most kMaxShown rows of the device that matters most, and notes.
struct Style {
  bool all = false;     // all rows of all devices
  bool blocks = false;  // the terminal shows UTF-8
};
inline constexpr std::size_t kMaxShown = 8;

void print_text(const Report& report, std::ostream& out, Style style = {});
void print_markdown(const Report& report, std::ostream& out, Style style = {});
void print_json(const Report& report, std::ostream& out);

/// What such a page may do: show itself.
inline constexpr const char* kContentPolicy =
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors "
    "'none'";
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

/// Nobody can picture +2670 %.
bool is_in_times(const Change& change);
/// "3.6"
std::string times_text(double ratio);
/// "-18 to -5 %", "0.3 to 13 times"
std::string interval_text(const compare::Interval& interval);
/// "windows of about 3 hours would decide"
std::string length_text(double hours);

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
/// The first `rows` by weight; `counts`: with the number of I/Os behind them.
Table verdict_table(const DeviceReport& device, std::size_t rows, bool counts);
/// `changed`: only what differs by more than the margin.
Table load_table(const DeviceReport& device, bool changed);

/// The remarks on rows, below the table: "reads p99: cannot tell: ... ".
std::vector<std::string> row_remarks(const Comparison& comparison);

// What matters most comes first: what is worse, what is better, then a p99 before a p50, and more waiting before less.
std::vector<const Row*> by_weight(const Comparison& comparison);
std::vector<const DeviceReport*> by_weight(const Report& report);

/// The answer, in sentences of at most twenty words: what changed, on what, by how much, how sure.
std::vector<std::string> answer_of(const Comparison& comparison);
std::vector<std::string> answer_of(const Report& report);

/// Each said once, with the devices that it is about if those are not all.
struct NoteGroup {
  std::string title;
  std::vector<std::string> sentences;
};
std::vector<NoteGroup> notes_of(const Report& report);

/// One line for each window, and a scale. Empty: there are no latencies. `blocks`: drawn with UTF-8.
std::string picture_text(const DeviceReport& device, bool blocks);
std::string picture_svg(const DeviceReport& device);

/// "Before", "2026-11-23 09:00 to 17:00 UTC, 8 h measured"
std::vector<std::pair<std::string, std::string>> windows_of(const DeviceReport& device);
/// What is known to have changed: settings and marks, or else what was asked about.
std::vector<util::OutsideText> changes_of(const Report& report);
/// Of the whole host (report_ladder.cpp). Empty: no write ladder was kept.
Table ladder_table(const Report& report);
/// Why ratios are missing, below the table.
std::vector<std::string> ladder_remarks(const Report& report);
/// {"before": ..., "after": ...}
std::string ladder_json(const Report& report);

/// "nvme0n1 (Model, serial S)"
util::OutsideText device_text(const model::PastDevice& device);
/// "2026-11-23 09:00 UTC  nvme0n1  scheduler: none -> mq-deadline"
util::OutsideText setting_text(const model::SettingChange& change);

}  // namespace ssdpulse::report
