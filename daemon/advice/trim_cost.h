// SPDX-License-Identifier: Apache-2.0
// TrimCost: what the ways of trimming cost here, and whether they do anything. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "daemon/advice/rule.h"

namespace ssdpulse::advice {

/// What one way of trimming costs per day, except for the longest burst; absent: not measured.
struct WayOfTrimming {
  std::optional<double> burst_seconds;
  std::optional<double> longest_burst_seconds;  // of all days
  std::optional<double> bytes;
  /// How much longer reads and writes took during its discards than the others: only the history distinguishes them.
  std::optional<double> excess_seconds;
};

/// What trimming costs some disks.
struct TrimCost {
  WayOfTrimming online;
  WayOfTrimming fstrim;
  std::optional<double> excess_seconds;  // in spikes that discards caused; that of both ways together if it is more
};
TrimCost trim_cost(const Facts& facts, const std::vector<std::string>& disks);

/// Whether fstrim is known to cost the disks of a mount more than online discard does.
bool fstrim_costs_more(const Facts& facts, const MountSettings& mount);

/// What was discarded on some disks, by whomever, as far back as is known.
struct Discarded {
  std::optional<double> bytes;  // absent: not measured on all of them
  double seconds = 0;           // that all of them were observed
};
Discarded discarded_on(const Facts& facts, const std::vector<std::string>& disks);

/// Adds the tail of reads during discards and of the others, for the disk with the worst one.
void add_tail(const Facts& facts, const std::vector<std::string>& disks, Finding& finding);

/// After how many seconds of measuring fstrim.timer has certainly run once, by its calendar. A day of the calendar is
/// as long as Facts::enough.
double seconds_until_fstrim(const Facts& facts);

/// Mounted with the option discard, in any of its forms.
bool has_online_discard(const MountSettings& mount);

/// Adds to a finding the change that ends it, for now, permanently, and the undo; false if no command can be given.
bool drop_online_discard(Finding& finding, const MountSettings& mount);

/// Whether a disk below the mount takes discards, and not every array or volume in between stops them: otherwise fstrim
/// fails (EOPNOTSUPP).
bool takes_discards(const Facts& facts, const MountSettings& mount);

/// fstrim.timer belongs to the host: it is unnecessary if every mount whose disks take discards is trimmed online at a
/// lower cost.
bool timer_is_needless(const Facts& facts);

}  // namespace ssdpulse::advice
