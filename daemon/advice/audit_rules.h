// SPDX-License-Identifier: Apache-2.0
// All rules, each in the file of its name in this folder, and what several of them share; rule_list.cpp orders them.
// Q: queues and the block layer; N: drives; F: file systems and the host.
#pragma once

#include "daemon/advice/audit.h"

namespace ssdpulse::advice {

extern const Rule kQ1;
extern const Rule kQ2;
extern const Rule kQ3;
extern const Rule kQ5;
extern const Rule kQ6;
extern const Rule kQ7;
extern const Rule kQ8;
extern const Rule kQ9;
extern const Rule kQ10;
extern const Rule kQ11;
extern const Rule kQ13;
extern const Rule kQ14;
extern const Rule kN1;
extern const Rule kN2;
extern const Rule kN3;
extern const Rule kN4;
extern const Rule kN7;
extern const Rule kN9;
extern const Rule kN10;
extern const Rule kN11;
extern const Rule kN12;
extern const Rule kN13;
extern const Rule kN14;
extern const Rule kN16;
extern const Rule kF1;
extern const Rule kF2;
extern const Rule kF3;
extern const Rule kF4;
extern const Rule kF5;
extern const Rule kF6;
extern const Rule kF7;
extern const Rule kF8;
extern const Rule kF9;
extern const Rule kF12;
extern const Rule kF13;
extern const Rule kF14;
extern const Rule kF15;
extern const Rule kF17;
extern const Rule kF18;
extern const Rule kF21;

/// dm-crypt volumes whose flags cryptsetup can change by name alone while they are open. A LUKS2 header also keeps
/// them. A plain volume is `none`: everything it was opened with would have to be given again.
enum class CryptKind : std::uint8_t { none, luks1, luks2 };
CryptKind kind_of_crypt(const DiskSettings& array);

/// Adds to a finding the change of a volume's flags to these, for now, permanently, and the undo: cryptsetup sets all
/// flags at once. If the current ones are unknown, it adds no command, and a note that explains it. `option`: what
/// crypttab calls the new ones.
void refresh_crypt(Finding& finding, const DiskSettings& array, const std::set<std::string>& flags,
                   const std::string& option);

/// Whether a disk below an array or a volume takes discards.
bool disk_below_takes_discards(const Facts& facts, const DiskSettings& array);

/// Mounted with the option discard, in any of its forms.
bool has_online_discard(const MountSettings& mount);

/// For a rule that misses an option which may be in force all the same: see model::UnshownOptions.
Finding unknown_for_options(std::string found);

/// How to make a change of mount options permanent: in /etc/fstab, or in the super block if the option comes from
/// there. `mountpoint_word`: for a shell.
std::string permanently(const MountSettings& mount, const std::string& option, const std::string& mountpoint_word);

/// Adds to a finding the change that ends it, for now, permanently, and the undo; false if no command can be given.
bool drop_online_discard(Finding& finding, const MountSettings& mount);

/// What one way of trimming costs per day; absent: not measured.
struct WayOfTrimming {
  std::optional<double> burst_seconds;
  std::optional<double> longest_burst_seconds;
  std::optional<double> bytes;
  /// How much longer reads and writes took during its discards than the others: only the history distinguishes them.
  std::optional<double> excess_seconds;
};

/// What trimming costs some disks.
struct TrimCost {
  WayOfTrimming online;
  WayOfTrimming fstrim;
  std::optional<double> excess_seconds;  // waiting in spikes that discards caused, or of both ways if that is more
};
TrimCost trim_cost(const Facts& facts, const std::vector<std::string>& disks);

/// None of its requests is seen, so that nothing of it is measured.
inline bool is_unseen(const Facts& facts, const DiskSettings& disk) {
  return !disk.device.has_requests || facts.measured.device(disk.device.name).unseen;
}

/// What was discarded on some disks, by whomever, as far back as is known.
struct Discarded {
  std::optional<double> bytes;  // absent: not measured on all of them
  double seconds = 0;           // that all of them were observed
};
Discarded discarded_on(const Facts& facts, const std::vector<std::string>& disks);

/// In how many seconds of measuring fstrim.timer has certainly run once, by its calendar.
double seconds_until_fstrim(const Facts& facts);

/// Adds the tail of reads during discards and of the others, for the disk with the worst one, and the longest burst.
void add_tail(const Facts& facts, const std::vector<std::string>& disks, Finding& finding);

/// Whether fstrim is known to cost the disks of a mount more than online discard does.
bool fstrim_is_dearer(const Facts& facts, const MountSettings& mount);

/// Whether a disk below it does, and no array or volume in between stops them: otherwise fstrim fails (EOPNOTSUPP).
bool takes_discards(const Facts& facts, const MountSettings& mount);

/// fstrim.timer belongs to the host: it is unnecessary if every mount whose disks take discards is trimmed online at a
/// lower cost.
bool timer_is_needless(const Facts& facts);

}  // namespace ssdpulse::advice
