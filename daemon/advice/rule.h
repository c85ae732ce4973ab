// SPDX-License-Identifier: Apache-2.0
// Rule: judges one disk, array, mount or the host by the Facts, and never sees anything else. Pure. The rules of one
// area are in AREA_rules.cpp, with a table at the end: a new one is a function and its row there. What several areas
// share is declared below.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/advice/device_evidence.h"
#include "daemon/advice/measured.h"
#include "daemon/base/outside_text.h"
#include "daemon/model/block_io.h"
#include "daemon/model/finding.h"
#include "daemon/model/host_settings.h"

namespace ssdpulse::advice {

using model::DiskSettings;
using model::Finding;
using model::MountSettings;
using model::Operation;
using model::SpikeCause;
using model::Verdict;

/// Everything that the rules examine, gathered once.
struct Facts {
  model::HostSettings settings;
  Measured measured;
  std::map<std::string, DeviceEvidence> evidence = {};  // by the disk's name: what the history knows about it
  /// How long the host must have been observed before a rule advises something; some rules need a multiple of it
  /// (Rule::days). A day by default: loads have daily habits.
  std::chrono::seconds enough = std::chrono::hours(24);
};

/// One of the functions is set. Its result gets the rule's id and source, the device's name, and the time over which it
/// was measured, unless the kernel measured it.
struct Rule {
  std::string_view id;      // stable: scripts and acceptances refer to it. Q: queues; N: drives; F: file systems, host
  std::string_view title;   // what is examined
  std::string_view limit;   // when something is advised, in words
  std::string_view source;  // where it comes from
  int days = 1;             // that must have been observed, in multiples of Facts::enough; 0: advises at once
  bool by_history = false;  // its evidence is from the history if there is one; else from the daemon's metrics
  Finding (*of_disk)(const Facts&, const DiskSettings&) = nullptr;
  Finding (*of_array)(const Facts&, const DiskSettings&) = nullptr;
  Finding (*of_mount)(const Facts&, const MountSettings&) = nullptr;
  Finding (*of_host)(const Facts&) = nullptr;
};

std::span<const Rule> queue_rules();
std::span<const Rule> drive_rules();
std::span<const Rule> array_rules();
std::span<const Rule> trim_rules();
std::span<const Rule> file_system_rules();
std::span<const Rule> host_rules();

// Findings of these verdicts; see Finding for `found` and `why`.
Finding ok(std::string found);
Finding info(std::string found, std::string why);
Finding danger(std::string found, std::string why);
Finding unknown(std::string found, std::string why);
Finding not_applicable(std::string why);

/// For a rule that misses an option which may be in force all the same: see model::UnshownOptions.
Finding unknown_for_options(std::string found);

/// The disks with these names, such as those below an array or a mount; names that are not known are left out.
std::vector<const DiskSettings*> disks_named(const Facts& facts, const std::vector<std::string>& names);

/// Whether a disk below an array or a mount accepts discards.
bool any_accepts_discards(const Facts& facts, const std::vector<std::string>& disks);

/// The controller under which the daemon reports a drive: by its own list of namespaces, else by the kernel's links. Of
/// several controllers, both may choose another one. Empty: not an NVMe drive.
std::string drive_of(const Facts& facts, const DiskSettings& disk);

/// None of its requests is seen, so that nothing of it is measured.
bool is_unseen(const Facts& facts, const DiskSettings& disk);

/// What the history knows about a disk; points into `facts`. Null if it knows nothing, or less than the daemon since
/// its start, of which at most a day counts.
const DeviceEvidence* evidence_of(const Facts& facts, const std::string& disk);

/// For how long a disk was observed: by the history if `by_history` and there is one, else since the daemon's start.
double observed_seconds(const Facts& facts, const std::string& disk, bool by_history);

/// Waiting beyond the usual, from these causes, in seconds a day; ongoing spikes included.
std::optional<double> excess_per_day(const Facts& facts, const std::string& device,
                                     const std::vector<SpikeCause>& causes);

/// Bytes of an operation, per day, and in total: in the history's days (see evidence_of()), else since the daemon's
/// start.
std::optional<double> bytes_per_day(const Facts& facts, const std::string& device, Operation operation);
std::optional<double> bytes_of(const Facts& facts, const std::string& device, Operation operation);

/// The certain lower bound of write amplification, over a week, else over a day: a lifetime value shows nothing about
/// the current load. The largest of several disks; nothing if none is known.
std::optional<double> write_amplification_at_least(const Facts& facts, const DiskSettings& disk);
std::optional<double> write_amplification_at_least(const Facts& facts, const std::vector<std::string>& disks);

/// Of the bytes read; nothing if none were.
std::optional<double> random_share(const MeasuredOperation& reads);

/// Nothing if there are no values.
std::optional<double> mean(const Distribution& values);

/// Nothing if one is unknown, or `whole` is 0.
std::optional<double> ratio(std::optional<double> part, std::optional<double> whole);

// What is worth a change: a minute of waiting, or ten gigabytes of wear, a day.
inline constexpr double kExcessLimit = 60;
inline constexpr double kWearLimit = 10e9;

/// What a setting costs here, and the limit from which a change is worthwhile.
struct Evidence {
  std::string name;  // with its unit
  std::optional<double> value;
  double limit = 0;
};

/// Waiting on a disk from these causes, against kExcessLimit.
Evidence excess_evidence(const Facts& facts, const DiskSettings& disk, const std::vector<SpikeCause>& causes);

/// `bad`, a setting that does harm elsewhere, becomes `advise` if all evidence was measured here and is at or above its
/// limit; else it stays `info` and reports what is missing. judge() withdraws the advice if too little time was
/// observed. Evidence called excess_seconds_per_day or wear_bytes_per_day is also its cost.
Finding weigh(const Facts& facts, Finding bad, const std::vector<Evidence>& evidence);

/// util::for_shell(), or nothing, and then `finding` explains why it gives no command.
std::optional<std::string> word_or_why(const util::OutsideText& name, Finding& finding);

/// The path of a file below the disk's directory in sysfs.
std::string sysfs_path(const DiskSettings& disk, const std::string& file);

/// Adds the change of a file below the disk's directory in sysfs: for now, permanently by a udev rule, and the undo,
/// which also removes the rule. `before`: what the undo writes; empty: the file's current content.
void change_file(Finding& finding, const DiskSettings& disk, const std::string& file, const std::string& value,
                 const std::string& before = "");

/// How to make a change of mount options permanent: in /etc/fstab, or in the super block if the option comes from
/// there. `mountpoint_word`: for a shell.
std::string permanently(const MountSettings& mount, const std::string& option, const std::string& mountpoint_word);

}  // namespace ssdpulse::advice
