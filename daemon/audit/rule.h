// SPDX-License-Identifier: Apache-2.0
// What is a rule? It judges one disk, array, mount or the host by the facts, and never sees anything else. A new one is
// a file in `rules` and one line each in rules.h, rule_list.cpp and CMakeLists.txt.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/audit/facts.h"
#include "daemon/model/finding.h"
#include "daemon/model/operation.h"

namespace ssdpulse::audit {

using model::DiskSettings;
using model::Finding;
using model::MountSettings;
using model::Verdict;

/// One of the functions is set. What it returns gets the rule's id and source, the device's name, and the time over
/// which it was measured, if that was not the kernel's doing.
struct Rule {
  std::string_view id;      // stable: scripts know it, and who accepts a finding
  std::string_view title;   // what is looked at
  std::string_view limit;   // from when on something is advised, in words
  std::string_view source;  // who says so
  int days = 1;             // that must have been observed, in multiples of Facts::enough
  bool by_history = false;  // its evidence is what the history has, where there is one; else what the daemon exports
  Finding (*of_disk)(const Facts&, const DiskSettings&) = nullptr;
  Finding (*of_array)(const Facts&, const DiskSettings&) = nullptr;
  Finding (*of_mount)(const Facts&, const MountSettings&) = nullptr;
  Finding (*of_host)(const Facts&) = nullptr;
};

// Findings in words.
Finding ok(std::string found);
Finding info(std::string found, std::string why);
Finding danger(std::string found, std::string why);
Finding unknown(std::string found, std::string why);
Finding not_applicable(std::string why);

/// In the largest two units that say something: 6 d 3 h, 1 min 27 s.
std::string duration(double seconds);

/// What the history knows of a disk; null where it knows nothing, or less than the daemon since its start.
const DevicePast* past_of(const Facts& facts, const std::string& disk);

/// For how long a disk was observed: by the history if `by_history` and there is one, else since the daemon's start.
double observed_seconds(const Facts& facts, const std::string& disk, bool by_history);

/// What a setting costs here, and from when on that is worth a change.
struct Evidence {
  std::string name;  // with its unit
  std::optional<double> value;
  double limit = 0;
};

/// `bad`, a setting that does harm elsewhere, becomes `advise` if every evidence was measured here and is at or above
/// its limit; else it stays `info` and says what is missing. judge() takes the advice back where too little time was
/// observed. An evidence called excess_seconds_per_day
/// or wear_bytes_per_day is its cost, too.
Finding weigh(const Facts& facts, Finding bad, const std::vector<Evidence>& evidence);

/// `name`, a path or a name that comes from outside, as one word of a shell: as it is if nothing in it means something
/// to one, else in single quotes. Nothing where no quoting helps: bytes that are not shown as they are (all but
/// printable ASCII), and a leading hyphen, which makes it an option.
std::optional<std::string> shell_word(const std::string& name);

/// shell_word(), or nothing, and `finding` says why it gives no command.
std::optional<std::string> word_or_why(const std::string& name, Finding& finding);

/// Of a file below the disk's directory in sysfs.
std::string sysfs_path(const DiskSettings& disk, const std::string& file);

/// The change of a file below the disk's directory in sysfs: now, for good by a rule of udev, and back, which takes the
/// rule away, too. `before`: what the way back writes; empty: what the file says now.
void change_file(Finding& finding, const DiskSettings& disk, const std::string& file, const std::string& value,
                 const std::string& before = "");

/// Waiting beyond what is usual, of these causes (see SpikeCause), in seconds a day; of spikes that go on, too.
std::optional<double> excess_per_day(const Facts& facts, const std::string& device,
                                     const std::vector<std::string_view>& causes);

/// Bytes of an operation ("read", "write", "discard"), a day and so far.
std::optional<double> bytes_per_day(const Facts& facts, const std::string& device, model::Operation operation);
std::optional<double> bytes_of(const Facts& facts, const std::string& device, model::Operation operation);

/// Bytes of writes that begin or end inside a unit of the disk, a day and so far. Nothing where the disk names a unit
/// below `unit`: what begins inside a larger one is not counted.
std::optional<double> misaligned_bytes_per_day(const Facts& facts, const DiskSettings& disk, std::uint64_t unit);
std::optional<double> misaligned_bytes_of(const Facts& facts, const DiskSettings& disk, std::uint64_t unit);

/// Mean of a histogram's values; nothing of none.
std::optional<double> mean(const Facts& facts, const std::string& histogram, Measurements::Labels where);

/// Write amplification that holds for sure, over a week, else over a day: a drive's life says nothing of its load now.
/// Of several disks the largest; nothing where none is known.
std::optional<double> write_amplification_at_least(const Facts& facts, const DiskSettings& disk);
std::optional<double> write_amplification_at_least(const Facts& facts, const std::vector<std::string>& disks);

std::optional<double> ratio(std::optional<double> part, std::optional<double> whole);

inline constexpr std::uint64_t kFlashPage = 4096;  // no flash has smaller ones

// What is worth a change: a minute of waiting, or ten gigabytes of wear, a day.
inline constexpr double kExcessLimit = 60;
inline constexpr double kWearLimit = 10e9;

}  // namespace ssdpulse::audit
