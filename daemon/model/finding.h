// SPDX-License-Identifier: Apache-2.0
// Finding: what a check of `doctor` or a rule of `audit` reports about this host. kDriveWarnings: what an NVMe drive
// warns of in its health page. Values only.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "daemon/base/complete.h"
#include "daemon/base/outside_text.h"

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
  std::string change = {};  // for now: a shell command line if there is one, else a sentence; empty: nothing to change
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

/// A finding that somebody has decided to live with, as in /etc/ssdpulse/accepted.yaml.
struct Acceptance {
  std::string id;      // shell glob on rules, like the next
  std::string device;  // on devices and mount points; the host is ""
  std::string reason;
  std::string expires;  // YYYY-MM-DD; from that day on it counts again
};

/// What a warning of a drive means, what to do and how urgent it is.
struct DriveCondition {
  Verdict verdict;           // danger: its alert is critical; advise: a warning
  std::string_view meaning;  // after "the drive: "
  std::string_view advice;
  std::string_view risk;  // of following the advice; empty: none
};

struct DriveWarning {
  std::uint8_t bit;        // of byte 0; of an endurance group too if `of_groups`
  std::string_view label;  // `warning` of ssdpulse_nvme_critical_warning
  bool of_groups;
  DriveCondition condition;
};

inline constexpr std::string_view kRiskOfReplacing = "copying reads all of it; have a backup first";

/// The bits of critical_warning (NVM Express Base 2.x, SMART / Health Information); 6 and 7 are not assigned by the
/// version that drives implement. The one table behind the audit, the alerts and their runbooks; drive_warnings_test
/// compares them.
inline constexpr auto kDriveWarnings = std::to_array<DriveWarning>({
    {0,
     "available_spare",
     true,
     {Verdict::danger, "its spare blocks are below its own threshold: it may become read-only", "replace it soon",
      kRiskOfReplacing}},
    {1,
     "temperature",
     false,
     {Verdict::advise, "its temperature is outside its limits: it may slow down or shut down",
      "improve its cooling: fans, filters, inlet temperature, its slot, a heat sink", "noise and power"}},
    {2,
     "reliability",
     true,
     {Verdict::danger, "media or internal errors have made it unreliable",
      "check that there are other copies of the data, then replace it", kRiskOfReplacing}},
    {3,
     "read_only",
     true,
     {Verdict::danger, "it accepts no more writes", "check that there are other copies of the data, then replace it",
      kRiskOfReplacing}},
    {4,
     "volatile_backup",
     false,
     {Verdict::danger, "its power-loss protection has failed: a power failure can lose acknowledged writes",
      "disable its volatile write cache, or replace it", kRiskOfReplacing}},
    {5,
     "persistent_memory",
     false,
     {Verdict::danger, "its persistent memory region has become read-only or unreliable",
      "keep nothing in that region that has no other copy, then replace it", kRiskOfReplacing}},
});

/// Its own estimate is 100 % or more. Alone, with spare blocks left, that is age and no failure.
inline constexpr DriveCondition kLifeUsedUp{
    Verdict::advise, "its rated life is used up: it still works, usually without warranty",
    "plan its replacement, and keep nothing on it that has no other copy", kRiskOfReplacing};

}  // namespace ssdpulse::model
