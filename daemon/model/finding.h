// SPDX-License-Identifier: Apache-2.0
// A finding: what one check of `doctor` or one rule of `audit` reports about this host. Values only.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "daemon/util/complete.h"
#include "daemon/util/outside_text.h"

namespace ssdpulse::model {

/// `advise`: something should be changed, and there is evidence measured here; `danger`: data, a drive or all
/// measurement is at risk; `info`: worth knowing, but not certain that anything should be done; `unknown`: could not be
/// decided, and Finding::why explains why. In the order in which findings are shown.
enum class Verdict : std::uint8_t { danger, advise, unknown, info, ok, not_applicable };
inline constexpr std::size_t kVerdicts = util::count_of<Verdict>();
inline constexpr auto kVerdictNames =
    util::names<Verdict>({"danger", "advise", "unknown", "info", "ok", "not applicable"});

/// What measured it: the daemon since its start, the history, or the kernel since a path appeared. The kernel does not
/// report how long ago that was: Finding::observed_seconds is then the host's uptime, the upper bound.
enum class Observer : std::uint8_t { daemon, history, kernel };
inline constexpr auto kObserverNames = util::names<Observer>({"daemon", "history", "kernel"});

struct Finding {
  std::string id;  // of the check or rule; stable, for scripts and for accepting it
  Verdict verdict = Verdict::ok;
  util::OutsideText device;  // or mount point; empty: the host
  std::string found;         // the state found, without the device's name, so that equal findings can be shown as one
  std::string why;           // why it matters, or why it is unknown
  /// Measured on this host: name, which carries the unit, and value. What was not measured is absent.
  std::map<std::string, double> evidence = {};
  std::string change = {};      // for now: a shell command line if there is one, else words; empty: nothing to change
  std::string persistent = {};  // the same, but so that it survives a reboot
  std::string undo = {};        // reverts `change`
  std::string risk = {};        // what the change costs
  std::string source = {};      // where this advice comes from
  std::string proof = {};       // the command that shows afterwards whether it helped
  /// The most it can cost, by which findings are ordered. Absent: unknown.
  std::optional<double> excess_seconds_per_day = {};
  std::optional<double> wear_bytes_per_day = {};
  std::optional<std::chrono::system_clock::time_point> since = {};  // when it was first seen
  std::optional<double> observed_seconds = {};                      // for how long the evidence was measured
  Observer observer = Observer::daemon;                             // of the evidence
  std::string title = {};  // of `device`, for people (see device_title.h); empty: its name is all that is known

  /// For sentences and tables; empty: the host.
  [[nodiscard]] std::string who() const { return title.empty() ? util::for_json(device) : title; }
};

}  // namespace ssdpulse::model
