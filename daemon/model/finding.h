// SPDX-License-Identifier: Apache-2.0
// A finding: what one check of `doctor` or one rule of `audit` says of this host. Values only.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace ssdpulse::model {

/// `advise`: something should be changed, and there is evidence measured here; `danger`: data, a drive or all of the
/// measuring is at risk; `info`: worth knowing, nothing to be done for sure; `unknown`: could not be decided, and
/// Finding::why says why. In the order in which findings are shown.
enum class Verdict : std::uint8_t { danger, advise, unknown, info, ok, not_applicable };
inline constexpr std::size_t kVerdicts = 6;
inline constexpr std::array<std::string_view, kVerdicts> kVerdictNames{"danger", "advise", "unknown",
                                                                       "info",   "ok",     "not applicable"};

/// Who measured: the daemon since its start, the history, or the kernel since a path is there. How long that is the
/// kernel does not say: Finding::observed_seconds is then the host's uptime, the most that it can be.
enum class Observer : std::uint8_t { daemon, history, kernel };
inline constexpr std::array<std::string_view, 3> kObserverNames{"daemon", "history", "kernel"};

struct Finding {
  std::string id;  // of the check or rule; stable, for scripts and for accepting it
  Verdict verdict = Verdict::ok;
  std::string device;  // or mount point; empty: the host
  std::string found;   // what is, without the device's name, so that equal findings can be shown as one
  std::string why;     // why it matters, or why it is not known
  /// Measured on this host: name, which carries the unit, and value. What was not measured is not in it.
  std::map<std::string, double> evidence = {};
  std::string change = {};      // now: one line for a shell where there is one, else words; empty: nothing to change
  std::string persistent = {};  // the same, so that it survives a restart of the host
  std::string undo = {};        // takes back `change`
  std::string risk = {};        // what the change costs
  std::string source = {};      // who says so
  std::string proof = {};       // the command that shows afterwards whether it helped
  /// What it costs at most, which is how findings are ordered. Absent: not known.
  std::optional<double> excess_seconds_per_day = {};
  std::optional<double> wear_bytes_per_day = {};
  std::optional<std::chrono::system_clock::time_point> since = {};  // when it was first seen
  std::optional<double> observed_seconds = {};                      // for how long the evidence was measured
  Observer observer = Observer::daemon;                             // of the evidence
};

}  // namespace ssdpulse::model
