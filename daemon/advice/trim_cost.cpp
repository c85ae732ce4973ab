// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <utility>

#include "daemon/advice/audit_rules.h"

namespace ssdpulse::advice {
namespace {

/// For others, such as vfat, the kernel refuses a remount with nodiscard: they have no such option.
bool knows_nodiscard(const std::string& fstype) {
  constexpr auto kKnow =
      std::to_array<std::string_view>({"ext3", "ext4", "btrfs", "f2fs", "gfs2", "jfs", "nilfs2", "xfs"});
  return std::find(kKnow.begin(), kKnow.end(), fstype) != kKnow.end();
}

/// Whether an array or volume with this name, or with this partition, keeps discards from the disks below.
bool stops_discards(const Facts& facts, const std::string& volume) {
  return std::any_of(facts.settings.arrays.begin(), facts.settings.arrays.end(), [&](const DiskSettings& array) {
    const bool is = array.device.name == volume ||
                    std::any_of(array.partitions.begin(), array.partitions.end(),
                                [&](const model::PartitionSettings& partition) { return partition.name == volume; });
    return is && array.files.number("queue/discard_max_bytes") == std::uint64_t{0};
  });
}

void add_evidence(const DeviceEvidence& past, const TrimEvidence& trim, WayOfTrimming& way) {
  using model::Latency;
  add_figure(way.burst_seconds, past.per_day(trim.burst_seconds));
  add_figure(way.bytes, past.per_day(static_cast<double>(trim.bytes)));
  way.longest_burst_seconds = std::max(way.longest_burst_seconds, std::optional(trim.longest_burst_seconds));
  // Where device times are not measured, it is unknown what ran during a discard.
  const LatencyTotal device =
      latency_total(past, {Latency::read_device_none, Latency::read_device_discard, Latency::read_device_flush,
                           Latency::read_device_both, Latency::write_device_none, Latency::write_device_discard,
                           Latency::write_device_flush, Latency::write_device_both});
  const LatencyTotal total = latency_total(past, {Latency::read_total, Latency::write_total});
  if (device.ios > 0 || total.ios == 0) {
    add_figure(way.excess_seconds, past.per_day(trim.excess_seconds));
  }
}

/// Of systemd.time(7), the longest time between two elapses that the calendar certainly keeps to.
int days_between_runs(const std::string& calendar) {
  constexpr auto kWords = std::to_array<std::pair<std::string_view, int>>({{"minutely", 1},
                                                                           {"hourly", 1},
                                                                           {"daily", 1},
                                                                           {"weekly", 7},
                                                                           {"monthly", 31},
                                                                           {"quarterly", 92},
                                                                           {"semiannually", 184},
                                                                           {"yearly", 366},
                                                                           {"annually", 366}});
  const std::string first = calendar.substr(0, calendar.find(' '));  // a time zone may follow
  for (const auto& [word, days] : kWords) {
    if (first == word) {
      return days;
    }
  }
  std::istringstream parts(calendar);
  bool is_weekly = calendar.empty();
  for (std::string part; parts >> part;) {
    const std::size_t last = part.rfind('-');
    if (last != std::string::npos && part.find(':') == std::string::npos && part.find_first_of("0123456789*") == 0) {
      const bool every_day = part.substr(last + 1) == "*";
      const std::string before = part.substr(0, last);
      const bool every_month = before.substr(before.rfind('-') + 1) == "*";
      if (!every_month || !every_day) {
        constexpr int kShortestMonth = 28;  // later days leave months out: from the 31st to the next may take 62 days
        const std::string day = part.substr(last + 1);
        const bool leaves_out =
            day.find_first_not_of("0123456789") == std::string::npos && std::atoi(day.c_str()) > kShortestMonth;
        return !every_month ? 366 : leaves_out ? 62 : 31;
      }
    }
    constexpr auto kWeekdays = std::to_array<std::string_view>({"mon", "tue", "wed", "thu", "fri", "sat", "sun"});
    std::string day = part.substr(0, 3);
    std::transform(day.begin(), day.end(), day.begin(), [](unsigned char c) { return std::tolower(c); });
    is_weekly = is_weekly || std::find(kWeekdays.begin(), kWeekdays.end(), day) != kWeekdays.end();
  }
  return is_weekly ? 7 : 1;
}

/// Of systemd.time(7), "1h 30min" or "2w". What is not understood is taken for very long: then nothing is concluded.
double seconds_of_span(const std::string& span) {
  constexpr double kVeryLong = 1e9;
  constexpr auto kUnits = std::to_array<std::pair<std::string_view, double>>({{"us", 1e-6},
                                                                              {"ms", 1e-3},
                                                                              {"s", 1},
                                                                              {"min", 60},
                                                                              {"h", 3600},
                                                                              {"d", 86400},
                                                                              {"w", 7 * 86400.0},
                                                                              {"M", 30.44 * 86400},
                                                                              {"y", 365.25 * 86400}});
  double seconds = 0;
  const char* at = span.c_str();
  while (*at != '\0') {
    char* end = nullptr;
    const double number = std::strtod(at, &end);
    if (end == at || !(number >= 0)) {
      return kVeryLong;
    }
    at = end + std::strspn(end, " ");
    std::string unit(at, std::strcspn(at, " 0123456789."));
    at += unit.size();
    at += std::strspn(at, " ");
    unit = unit.empty() || unit.starts_with("sec") ? "s" : unit;
    unit = unit == "m" || unit.starts_with("minute") ? "min" : unit == "months" || unit == "month" ? "M" : unit;
    for (const std::string_view word : {"hour", "hr", "day", "week", "year"}) {
      unit = unit == word || unit == std::string(word) + "s" ? std::string(word.substr(0, 1)) : unit;
    }
    const auto* found = std::find_if(kUnits.begin(), kUnits.end(), [&](const auto& one) { return one.first == unit; });
    if (found == kUnits.end()) {
      return kVeryLong;
    }
    seconds += number * found->second;
  }
  return seconds;
}

}  // namespace

bool has_online_discard(const MountSettings& mount) {
  return std::any_of(mount.options.begin(), mount.options.end(), [](const util::OutsideText& option) {
    return option == "discard" || option.starts_with("discard=");
  });
}

Finding unknown_for_options(std::string found) {
  return unknown(
      std::move(found),
      "its super block may ask for options that /proc/self/mountinfo does not show, and they cannot be read");
}

std::string permanently(const MountSettings& mount, const std::string& option, const std::string& mountpoint_word) {
  const auto volume = util::for_shell(mount.volumes.empty() ? "" : "/dev/" + mount.volumes.front());
  if (mount.unshown.in_force.count(option) == 0 || mount.fstype == "bcachefs" || !volume) {
    return fmt::format("remove {} from the options of {} in /etc/fstab", option, mountpoint_word);
  }
  const std::string flag = option == "data=journal"     ? "journal_data"
                           : option == "data=writeback" ? "journal_data_writeback"
                                                        : option;
  return fmt::format("tune2fs -o ^{} {}", flag, *volume);
}

bool drop_online_discard(Finding& finding, const MountSettings& mount) {
  const auto place = word_or_why(mount.mountpoint, finding);
  if (!place) {
    return false;
  }
  if (!knows_nodiscard(mount.fstype.raw())) {
    finding.persistent = permanently(mount, "discard", *place);
    finding.change = finding.persistent + ", unmount it and mount it again";
    finding.undo = "add discard to its options again, unmount it and mount it again";
    return true;
  }
  // XFS accepts the option at a remount, but continues as before.
  const bool again = mount.fstype == "xfs";
  const std::string how = again ? fmt::format("umount {} && mount -o ", *place) : "mount -o remount,";
  finding.change = fmt::format("{}nodiscard {}", how, *place);
  finding.persistent = permanently(mount, "discard", *place);
  finding.undo = fmt::format("{}discard {}  # and add discard to its options in /etc/fstab again", how, *place);
  finding.risk +=
      again ? "; it is unmounted for a moment, which the kernel refuses while anything uses it, and must be in "
              "/etc/fstab"
            : "";
  if (again && mount.mountpoint == "/") {
    finding.change.clear();  // it cannot be unmounted: only the permanent change, and a reboot
    finding.undo.clear();
    finding.persistent += " and from rootflags= on the kernel command line, then reboot";
  }
  return true;
}

TrimCost trim_cost(const Facts& facts, const std::vector<std::string>& disks) {
  TrimCost cost;
  std::optional<double> beside;
  for (const std::string& disk : disks) {
    add_figure(cost.excess_seconds, excess_per_day(facts, disk, {SpikeCause::discard}));
    if (const DeviceEvidence* past = evidence_of(facts, disk)) {
      add_evidence(*past, past->online, cost.online);
      add_evidence(*past, past->fstrim, cost.fstrim);
      continue;
    }
    for (const auto& [way, trigger] : {std::pair(&cost.online, model::DiscardTrigger::online),
                                       std::pair(&cost.fstrim, model::DiscardTrigger::fstrim)}) {
      const MeasuredDiscards& bursts = facts.measured.device(disk).discards[index(trigger)];
      add_figure(way->burst_seconds, facts.measured.per_day(bursts.burst_seconds));
      add_figure(way->bytes, facts.measured.per_day(bursts.burst_bytes));
    }
  }
  add_figure(beside, cost.online.excess_seconds);
  add_figure(beside, cost.fstrim.excess_seconds);
  cost.excess_seconds = std::max(cost.excess_seconds, beside);
  return cost;
}

Discarded discarded_on(const Facts& facts, const std::vector<std::string>& disks) {
  Discarded all;
  std::optional<double> least;
  for (const std::string& disk : disks) {
    const DeviceEvidence* past = evidence_of(facts, disk);
    const auto live = facts.measured.device(disk).operation(Operation::discard).bytes;
    if (past == nullptr && !live) {
      return {};
    }
    const double seconds =
        past != nullptr ? past->discards_observed_seconds : facts.measured.observed_seconds.value_or(0);
    const double kept = past != nullptr ? past->discarded_bytes : 0;
    all.bytes = all.bytes.value_or(0) + std::max(kept, live.value_or(0));  // its last minute is not in the history yet
    least = std::min(least.value_or(seconds), seconds);
  }
  all.seconds = least.value_or(0);
  return all;
}

double seconds_until_fstrim(const Facts& facts) {
  constexpr double kMargin = 1.1;  // days without a daemon
  const double runs =
      static_cast<double>(facts.enough.count()) * days_between_runs(facts.settings.fstrim.calendar.raw());
  return kMargin * (runs + seconds_of_span(facts.settings.fstrim.delay.raw()));
}

void add_tail(const Facts& facts, const std::vector<std::string>& disks, Finding& finding) {
  double worst = 0;
  for (const std::string& disk : disks) {
    const DeviceEvidence* past = evidence_of(facts, disk);
    const auto beside = past != nullptr ? read_p99_during_discards(*past) : std::nullopt;
    const auto alone = past != nullptr ? read_p99_alone(*past) : std::nullopt;
    if (beside && alone && *beside > worst) {
      worst = *beside;
      finding.evidence["reads_during_discards_p99_seconds"] = *beside;
      finding.evidence["other_reads_p99_seconds"] = *alone;
    }
  }
}

bool fstrim_is_dearer(const Facts& facts, const MountSettings& mount) {
  const auto [online, fstrim, all] = trim_cost(facts, mount.disks);
  if (online.excess_seconds && fstrim.excess_seconds && *online.excess_seconds + *fstrim.excess_seconds > 0) {
    return *fstrim.excess_seconds > *online.excess_seconds;
  }
  return fstrim.burst_seconds && *fstrim.burst_seconds > online.burst_seconds.value_or(0);
}

bool takes_discards(const Facts& facts, const MountSettings& mount) {
  const bool stop =
      !mount.volumes.empty() && std::all_of(mount.volumes.begin(), mount.volumes.end(),
                                            [&](const std::string& volume) { return stops_discards(facts, volume); });
  return !stop && std::any_of(facts.settings.disks.begin(), facts.settings.disks.end(), [&](const DiskSettings& disk) {
    return disk.device.discard &&
           std::find(mount.disks.begin(), mount.disks.end(), disk.device.name) != mount.disks.end();
  });
}

bool timer_is_needless(const Facts& facts) {
  return std::all_of(facts.settings.mounts.begin(), facts.settings.mounts.end(), [&](const MountSettings& mount) {
    return !takes_discards(facts, mount) || (has_online_discard(mount) && fstrim_is_dearer(facts, mount));
  });
}

}  // namespace ssdpulse::advice
