// SPDX-License-Identifier: Apache-2.0
// Comparison: what is different on one disk between two windows of time, how certain that is, and what is unknown.
//
// How the verdicts are made: deploy/docs/report.md. Pure: no I/O, no clock; the same seed gives the same answer.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "daemon/compare/verdict.h"
#include "daemon/model/history_answers.h"

namespace ssdpulse::compare {

/// What is known about one window.
struct Side {
  model::Window window;
  std::vector<model::MinuteOf> minutes;  // in order of time
  std::vector<model::PastWear> wear;     // likewise; the first one's bytes are from before the window and do not count
};

struct Question {
  model::PastDevice device;
  std::optional<Side> before;  // absent: one window alone, without verdicts
  Side after;
  std::vector<model::MinuteOf> day = {};       // the last one before the first window, as far as it is kept
  std::vector<model::MinuteOf> between;        // what happened between the windows
  std::vector<model::SettingChange> settings;  // from the beginning of the first window to the end of the second
  std::vector<model::Mark> marks;              // likewise
  std::optional<double> capacity_bytes = {};
  EstimateSettings chance = {};
  double time_scale = 1;  // how much faster the recorder's clock ran than the host's: other than 1 only in tests
};

enum class Unit : std::uint8_t {
  seconds,
  share,
  ratio,
  bytes_per_day,
  per_second,
  bytes_per_second,
  bytes,
  count,
  celsius
};

/// Where a row's interval comes from.
enum class IntervalFrom : std::uint8_t {
  windows,     // from what varies within them
  last_day,    // they are too short for that: from how much windows like these differed on the day before
  few_minutes  // too short, and no such day is known: as wide as so few minutes leave it
};

/// One line of the table. Less is better.
struct Row {
  std::string id;    // stable: read.p99
  std::string what;  // for people: "reads p99"
  Unit unit = Unit::seconds;
  std::optional<double> before = {};
  std::optional<double> after = {};
  double n_before = 0;  // I/Os; for wear, bytes from the host
  double n_after = 0;
  double n_needed = 0;  // on each side, to be shown at all; 0: any
  std::optional<Change> raw = {};
  std::optional<Change> adjusted = {};     // to the load before; only if the load differs
  std::optional<double> usual = {};        // ratio of the usual minutes
  std::optional<Interval> corrected = {};  // of answer(), for all rows of the table: what the verdict is by
  IntervalFrom from = IntervalFrom::windows;
  std::optional<Verdict> verdict = {};      // absent with one window
  std::string reason = {};                  // of what is neither better, nor worse, nor the same
  std::optional<double> hours_needed = {};  // of each window, if more of the same would decide

  [[nodiscard]] const std::optional<Change>& answer() const { return adjusted ? adjusted : raw; }
};

/// Shown alongside, without a verdict: more or less of it is neither good nor bad.
struct LoadRow {
  std::string id;
  std::string what;
  Unit unit = Unit::per_second;
  std::optional<double> before = {};
  std::optional<double> after = {};
};

/// What the reader of the table has to know, and what it does not show.
struct Note {
  std::string id;  // stable: several-settings
  std::string text;
};

/// How the load differs where the windows have none in common.
enum class LoadShift : std::uint8_t { none, less, more, other };

struct Comparison {
  model::PastDevice device;
  std::optional<model::Window> before = {};
  model::Window after;
  double hours_before = 0;  // measured
  double hours_after = 0;
  std::vector<Row> rows = {};
  std::vector<LoadRow> load = {};
  double common_load = 1;  // share of minutes with a load that both windows have
  bool load_differs = false;
  LoadShift load_shift = LoadShift::none;
  std::vector<model::SettingChange> differing = {};  // settings that changed between the windows
  std::vector<Note> notes = {};
};

/// Calls `progress` with a share from 0 to 1, now and then.
Comparison compare(const Question& question, const std::function<void(double)>& progress = {});

/// Whether any row is worse.
bool any_worse(const Comparison& comparison);

}  // namespace ssdpulse::compare
