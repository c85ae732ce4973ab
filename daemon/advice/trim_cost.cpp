// SPDX-License-Identifier: Apache-2.0
#include "daemon/advice/trim_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string_view>
#include <utility>

namespace ssdpulse::advice {
namespace {

/// For others, such as vfat, the kernel refuses a remount with nodiscard: they have no such option.
bool knows_nodiscard(const std::string& fstype) {
  constexpr auto kFilesystems =
      std::to_array<std::string_view>({"ext3", "ext4", "btrfs", "f2fs", "gfs2", "jfs", "nilfs2", "xfs"});
  return std::find(kFilesystems.begin(), kFilesystems.end(), fstype) != kFilesystems.end();
}

/// Whether an array or volume with this name, or with this partition, keeps discards from the disks below.
bool stops_discards(const Facts& facts, const std::string& volume) {
  return std::any_of(facts.settings.arrays.begin(), facts.settings.arrays.end(), [&](const DiskSettings& array) {
    const auto names = model::names_of_volumes(array);
    return std::find(names.begin(), names.end(), volume) != names.end() &&
           array.files.number("queue/discard_max_bytes") == std::uint64_t{0};
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
  constexpr std::pair<std::string_view, int> kShorthands[] = {
      {"minutely", 1},   {"hourly", 1},         {"daily", 1},    {"weekly", 7},    {"monthly", 31},
      {"quarterly", 92}, {"semiannually", 184}, {"yearly", 366}, {"annually", 366}};
  const std::string first = calendar.substr(0, calendar.find(' '));  // a time zone may follow
  for (const auto& [shorthand, days] : kShorthands) {
    if (first == shorthand) {
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
                                                                              {"d", kSecondsPerDay},
                                                                              {"w", 7 * kSecondsPerDay},
                                                                              {"M", 30.44 * kSecondsPerDay},
                                                                              {"y", 365.25 * kSecondsPerDay}});
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
    const auto* found =
        std::find_if(kUnits.begin(), kUnits.end(), [&](const auto& known) { return known.first == unit; });
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

bool drop_online_discard(Finding& finding, const MountSettings& mount) {
  const auto mountpoint = word_or_why(mount.mountpoint, finding);
  if (!mountpoint) {
    return false;
  }
  if (!knows_nodiscard(mount.fstype.raw())) {
    finding.persistent = permanently(mount, "discard", *mountpoint);
    finding.change = finding.persistent + ", unmount it and mount it again";
    finding.undo = "add discard to its options again, unmount it and mount it again";
    return true;
  }
  // XFS accepts the option at a remount, but continues as before.
  const bool again = mount.fstype == "xfs";
  const std::string how = again ? fmt::format("umount {} && mount -o ", *mountpoint) : "mount -o remount,";
  finding.change = fmt::format("{}nodiscard {}", how, *mountpoint);
  if (mount.fstype == "btrfs" || mount.fstype == "f2fs") {  // they discard by default (btrfs since 6.2)
    const char* former = mount.options.count("discard=async") > 0 ? "discard=async" : "discard";
    finding.persistent = fmt::format("add nodiscard to the options of {} in /etc/fstab", *mountpoint);
    finding.undo = fmt::format("{}{} {}  # and take nodiscard out of /etc/fstab", how, former, *mountpoint);
  } else {
    finding.persistent = permanently(mount, "discard", *mountpoint);
    finding.undo = fmt::format("{}discard {}  # and add discard to its options in /etc/fstab again", how, *mountpoint);
  }
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
  std::optional<double> during_discards = cost.online.excess_seconds;
  add_figure(during_discards, cost.fstrim.excess_seconds);
  cost.excess_seconds = std::max(cost.excess_seconds, during_discards);
  return cost;
}

Discarded discarded_on(const Facts& facts, const std::vector<std::string>& disks) {
  Discarded all;
  std::optional<double> shortest;
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
    shortest = std::min(shortest.value_or(seconds), seconds);
  }
  all.seconds = shortest.value_or(0);
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
    const auto during = past != nullptr ? read_p99_during_discards(*past) : std::nullopt;
    const auto others = past != nullptr ? read_p99_without_discards(*past) : std::nullopt;
    if (during && others && *during > worst) {
      worst = *during;
      finding.evidence["reads_during_discards_p99_seconds"] = *during;
      finding.evidence["other_reads_p99_seconds"] = *others;
    }
  }
}

bool fstrim_costs_more(const Facts& facts, const MountSettings& mount) {
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
  return !stop && any_accepts_discards(facts, mount.disks);
}

bool timer_is_needless(const Facts& facts) {
  return std::all_of(facts.settings.mounts.begin(), facts.settings.mounts.end(), [&](const MountSettings& mount) {
    return !takes_discards(facts, mount) || (has_online_discard(mount) && fstrim_costs_more(facts, mount));
  });
}

}  // namespace ssdpulse::advice
