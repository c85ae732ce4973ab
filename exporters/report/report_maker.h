// SPDX-License-Identifier: Apache-2.0
// make_report(): reads two windows of the history and compares them, disk by disk: for `ssdpulse report`, and for the
// daemon's page.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "daemon/history/history_reader.h"
#include "exporters/report/report_forms.h"

namespace ssdpulse::report {

struct PastWindows {
  std::optional<model::Window> before;  // absent: one window alone was asked for
  model::Window after;
  std::string change;                        // in words: what lies between the two; empty: not known
  std::optional<model::Window> during = {};  // while a command ran, between the two
};

struct Wanted {
  PastWindows windows;
  std::string device;  // name or serial number; empty: all that were measured in both windows
  std::string host;
  model::WallTime now;
  double time_scale = 1;       // see EvidenceSums: other than 1 in tests
  std::chrono::hours day{24};  // before the first window, which tells how much such windows differ by chance
};

/// What is being compared, and the share of it that is done.
using Progress = std::function<void(const std::string& device, double share)>;

/// ENODATA: nothing was measured in these windows. Reads and computes for up to seconds.
util::Result<Report> make_report(history::Reader& history, const Wanted& wanted, const Progress& progress = {});

/// Equal windows on both sides of a change from `first` to `last`, each of `width` at most, without `settle` after it.
/// Absent if less than a minute is left.
std::optional<PastWindows> windows_around(model::WallTime first, model::WallTime last, model::WallTime now,
                                          std::chrono::minutes settle, std::chrono::minutes width);

}  // namespace ssdpulse::report
