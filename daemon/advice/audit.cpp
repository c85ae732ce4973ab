// SPDX-License-Identifier: Apache-2.0
#include "daemon/advice/audit.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <tuple>
#include <utility>

#include "daemon/advice/audit_rules.h"
#include "daemon/base/glob.h"
#include "daemon/base/number_text.h"
#include "daemon/model/device_title.h"

namespace ssdpulse::advice {
namespace {

Finding make(Verdict verdict, std::string found, std::string why) {
  Finding finding;
  finding.verdict = verdict;
  finding.found = std::move(found);
  finding.why = std::move(why);
  return finding;
}

bool any_of(const std::string& text, bool (*is)(char)) { return std::any_of(text.begin(), text.end(), is); }

/// The "scheduler" of queue/scheduler, as a part of a file's name.
std::string tail(const std::string& file) { return file.substr(file.rfind('/') + 1); }

/// sysfs has '!' where the device's node has a slash.
std::string sysfs_name(const DiskSettings& disk) {
  std::string name = disk.device.name;
  std::replace(name.begin(), name.end(), '/', '!');
  return name;
}

struct UdevMatch {
  std::string keys;       // of a rule
  std::string file_name;  // a part of it
};

/// sda may be another disk after a reboot: SCSI disks are matched by their own identification, which contains the
/// serial number or a name given by the vendor. Nothing if there is none, or if it has a character that is special in
/// udev's patterns.
std::optional<UdevMatch> udev_match(const DiskSettings& disk) {
  const auto is_plain = [](const std::string& text) {
    return !any_of(text, [](char c) {
      const bool alphanumeric = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
      return !alphanumeric && std::string_view(" !-./:_").find(c) == std::string_view::npos;
    });
  };
  const model::Device& device = disk.device;
  const bool scsi = device.name.rfind("sd", 0) == 0;
  const std::string& identity = scsi ? device.wwid.raw() : device.name;
  if (identity.empty() || !is_plain(identity)) {
    return std::nullopt;
  }
  std::string file_name = identity;
  std::replace_if(
      file_name.begin(), file_name.end(), [](char c) { return c == ' ' || c == '/' || c == '!'; }, '_');
  return UdevMatch{scsi ? fmt::format(R"(KERNEL=="sd*", ATTR{{device/wwid}}=="{}")", identity)
                        : fmt::format(R"(KERNEL=="{}")", identity),
                   file_name};
}

bool counts_misaligned_to(const DiskSettings& disk, std::uint64_t unit) {
  return disk.device.write_granularity_bytes >= unit;
}

/// A spike is booked when it ends, after ten minutes at the latest, or later if few I/Os end. Until then its waiting is
/// pending, without a cause; here it is charged to the cause of the ongoing spike.
std::optional<double> spike_excess_per_day(const Facts& facts, const std::string& device, model::Operation operation,
                                           SpikeCause cause) {
  const MeasuredSpikes& spikes = facts.measured.device(device).spikes[operation];
  const bool goes_on = spikes.active_cause == cause;
  const Figure pending = goes_on ? spikes.pending_excess_seconds : std::nullopt;
  if (const DeviceEvidence* past = evidence_of(facts, device)) {
    return past->excess_per_day(operation, cause, pending.value_or(0));
  }
  const auto booked = facts.measured.per_day(spikes.excess_seconds[index(cause)]);
  return booked ? std::optional(*booked + facts.measured.per_day(pending).value_or(0)) : std::nullopt;
}

/// "[none] mq-deadline" -> "none"
std::string current(const std::string& text) {
  const std::size_t open = text.find('[');
  const std::size_t close = text.find(']', open == std::string::npos ? 0 : open);
  return open == std::string::npos || close == std::string::npos ? text : text.substr(open + 1, close - open - 1);
}

}  // namespace

std::string drive_of(const Facts& facts, const DiskSettings& disk) {
  const std::string& reported = facts.measured.device(disk.device.name).controller;
  return reported.empty() ? disk.controller_name : reported;
}
Finding ok(std::string found) { return make(Verdict::ok, std::move(found), ""); }
Finding info(std::string found, std::string why) { return make(Verdict::info, std::move(found), std::move(why)); }
Finding danger(std::string found, std::string why) { return make(Verdict::danger, std::move(found), std::move(why)); }
Finding unknown(std::string found, std::string why) { return make(Verdict::unknown, std::move(found), std::move(why)); }
Finding not_applicable(std::string why) { return make(Verdict::not_applicable, "does not apply", std::move(why)); }

std::string duration(double seconds) { return util::duration_text(seconds); }

const DeviceEvidence* evidence_of(const Facts& facts, const std::string& disk) {
  constexpr double kNearly = 0.9;  // the last minute is not written yet
  const auto found = facts.evidence.find(disk);
  if (found == facts.evidence.end()) {
    return nullptr;
  }
  const double live = facts.measured.observed_seconds.value_or(0);
  const double seen = found->second.observed_seconds();
  return seen > 0 && seen >= kNearly * std::min(live, kSecondsPerDay) ? &found->second : nullptr;
}

double observed_seconds(const Facts& facts, const std::string& disk, bool by_history) {
  const DeviceEvidence* past = by_history ? evidence_of(facts, disk) : nullptr;
  return past != nullptr ? past->observed_seconds() : facts.measured.observed_seconds.value_or(0);
}

Finding weigh(const Facts& facts, Finding bad, const std::vector<Evidence>& evidence) {
  bool measured = true;
  bool enough = true;
  for (const Evidence& one : evidence) {
    measured = measured && one.value.has_value();
    if (one.value) {
      bad.evidence[one.name] = *one.value;
      enough = enough && *one.value >= one.limit;
      if (one.name == "excess_seconds_per_day") {
        bad.excess_seconds_per_day = one.value;
      } else if (one.name == "wear_bytes_per_day") {
        bad.wear_bytes_per_day = one.value;
      }
    }
  }
  if (!facts.measured.answered && facts.evidence.empty()) {
    bad.why += "; what it costs here is not known: no daemon answers";
  } else if (!measured) {
    bad.why += "; what it costs here is not measured";
  } else if (!enough) {
    bad.why += "; here it costs too little to be worth a change";
  } else {
    bad.verdict = Verdict::advise;
    bad.proof = "ssdpulse report --change last";
    return bad;
  }
  bad.verdict = Verdict::info;
  return bad;
}

std::optional<std::string> word_or_why(const util::OutsideText& name, Finding& finding) {
  auto word = util::for_shell(name);
  if (!word) {
    finding.why += "; no command is given, because its name cannot be written into one safely";
  }
  return word;
}

std::string sysfs_path(const DiskSettings& disk, const std::string& file) {
  return fmt::format("/sys/block/{}/{}", sysfs_name(disk), file);
}

void change_file(Finding& finding, const DiskSettings& disk, const std::string& file, const std::string& value,
                 const std::string& before) {
  const auto path = word_or_why(sysfs_path(disk, file), finding);
  if (!path) {
    return;
  }
  finding.change = fmt::format("echo {} > {}", util::for_shell(value).value_or(value), *path);
  const auto former = util::for_shell(before.empty() ? current(disk.files.text(file).raw()) : before);
  finding.undo = former ? fmt::format("echo {} > {}", *former, *path) : "";
  const auto match = udev_match(disk);
  if (!match) {
    finding.why += "; no udev rule is given: nothing distinguishes the disk from one that gets its name later";
    return;
  }
  const auto rule =
      util::for_shell(fmt::format(R"(ACTION=="add|change", {}, ATTR{{{}}}="{}")", match->keys, file, value));
  const auto rule_file =
      util::for_shell(fmt::format("/etc/udev/rules.d/60-ssdpulse-{}-{}.rules", match->file_name, tail(file)));
  finding.persistent = fmt::format("echo {} > {}", *rule, *rule_file);
  finding.undo += former ? fmt::format("; rm -f {}", *rule_file) : "";
}

std::optional<double> excess_per_day(const Facts& facts, const std::string& device,
                                     const std::vector<SpikeCause>& causes) {
  std::optional<double> total;
  for (const SpikeCause cause : causes) {
    // Not commits: they consist of flushes and writes, which are counted here.
    for (const auto operation : {model::Operation::read, model::Operation::write, model::Operation::flush}) {
      add_figure(total, spike_excess_per_day(facts, device, operation, cause));
    }
  }
  return total;
}

std::optional<double> bytes_of(const Facts& facts, const std::string& device, Operation operation) {
  if (const DeviceEvidence* past = evidence_of(facts, device)) {
    return static_cast<double>(past->load.operations.at(model::index(operation)).bytes);
  }
  return facts.measured.device(device).operation(operation).bytes;
}

std::optional<double> bytes_per_day(const Facts& facts, const std::string& device, Operation operation) {
  if (const DeviceEvidence* past = evidence_of(facts, device)) {
    return past->per_day(static_cast<double>(past->load.operations.at(model::index(operation)).bytes));
  }
  return facts.measured.per_day(facts.measured.device(device).operation(operation).bytes);
}

std::optional<double> misaligned_bytes_per_day(const Facts& facts, const DiskSettings& disk, std::uint64_t unit) {
  return facts.measured.per_day(misaligned_bytes_of(facts, disk, unit));
}

std::optional<double> misaligned_bytes_of(const Facts& facts, const DiskSettings& disk, std::uint64_t unit) {
  return counts_misaligned_to(disk, unit) ? facts.measured.device(disk.device.name).misaligned_bytes : std::nullopt;
}

std::optional<double> mean(const Distribution& values) { return ratio(values.sum, values.count); }

std::optional<double> write_amplification_at_least(const Facts& facts, const DiskSettings& disk) {
  const MeasuredDrive& drive = facts.measured.drive(drive_of(facts, disk));
  return drive.write_amplification_lower_7d ? drive.write_amplification_lower_7d : drive.write_amplification_lower_24h;
}

std::optional<double> write_amplification_at_least(const Facts& facts, const std::vector<std::string>& disks) {
  std::optional<double> most;
  for (const DiskSettings& disk : facts.settings.disks) {
    if (std::find(disks.begin(), disks.end(), disk.device.name) != disks.end()) {
      most = std::max(most, write_amplification_at_least(facts, disk));
    }
  }
  return most;
}

std::optional<double> ratio(std::optional<double> part, std::optional<double> whole) {
  return part && whole && *whole > 0 ? std::optional(*part / *whole) : std::nullopt;
}

std::span<const Rule> rules() {
  static const std::array list{
      kQ1,  kQ2,  kQ3,  kQ5,  kQ6, kQ7, kQ8, kQ9, kQ10, kQ11, kQ13, kQ14, kN1, kN2,  kN3,  kN4,  kN7,  kN9,  kN10, kN11,
      kN12, kN13, kN14, kN16, kF1, kF2, kF3, kF4, kF5,  kF6,  kF7,  kF8,  kF9, kF12, kF13, kF14, kF15, kF17, kF18, kF21,
  };
  return list;
}

namespace {

/// For how long did the daemon or the history measure all the disks that the finding is about?
void note_time(const Facts& facts, const Rule& rule, const std::vector<std::string>& disks, Finding& finding) {
  std::optional<double> observed;
  for (const std::string& disk : disks) {
    const double one = observed_seconds(facts, disk, rule.by_history);
    observed = std::min(observed.value_or(one), one);
    if (rule.by_history && evidence_of(facts, disk) != nullptr) {
      finding.observer = model::Observer::history;
    }
  }
  finding.observed_seconds = observed ? observed : facts.measured.observed_seconds;
}

/// Withdraws advice if the time was too short.
void settle(const Facts& facts, const Rule& rule, Finding& finding) {
  const double needed = static_cast<double>(facts.enough.count()) * rule.days;
  if (finding.verdict == Verdict::advise && rule.days > 0 && finding.observed_seconds.value_or(0) < needed) {
    finding.verdict = Verdict::info;
    finding.proof.clear();
    finding.why += fmt::format("; not weighed yet: observed for {} of {}",
                               duration(finding.observed_seconds.value_or(0)), duration(needed));
  }
}

void add(std::vector<Finding>& all, const Facts& facts, const Rule& rule, const util::OutsideText& device,
         const std::vector<std::string>& disks, Finding finding) {
  if (!finding.evidence.empty()) {
    if (finding.observer != model::Observer::kernel) {
      note_time(facts, rule, disks, finding);
    }
    settle(facts, rule, finding);
  }
  finding.id = rule.id;
  finding.source = rule.source;
  finding.device = device;
  all.push_back(std::move(finding));
}

std::vector<std::string> all_disks(const Facts& facts) {
  std::vector<std::string> names;
  for (const DiskSettings& disk : facts.settings.disks) {
    names.push_back(disk.device.name);
  }
  return names;
}

auto weight(const Finding& one) {
  return std::tuple(one.verdict, -one.excess_seconds_per_day.value_or(0), -one.wear_bytes_per_day.value_or(0));
}

}  // namespace

std::vector<Finding> judge(const Facts& facts) {
  std::vector<Finding> all;
  for (const Rule& rule : rules()) {
    for (const DiskSettings& disk : facts.settings.disks) {
      if (rule.of_disk != nullptr) {
        add(all, facts, rule, disk.device.name, {disk.device.name}, rule.of_disk(facts, disk));
        all.back().title = model::device_title(facts.settings, disk.device.name).full;
      }
    }
    for (const DiskSettings& array : facts.settings.arrays) {
      if (rule.of_array != nullptr) {
        add(all, facts, rule, array.device.name, array.disks, rule.of_array(facts, array));
        all.back().title = model::device_title(facts.settings, array.device.name).full;
      }
    }
    for (const MountSettings& mount : facts.settings.mounts) {
      if (rule.of_mount != nullptr) {
        add(all, facts, rule, mount.mountpoint, mount.disks, rule.of_mount(facts, mount));
      }
    }
    if (rule.of_host != nullptr) {
      add(all, facts, rule, "", all_disks(facts), rule.of_host(facts));
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const Finding& a, const Finding& b) { return weight(a) < weight(b); });
  return all;
}

Accepted accept(std::vector<Finding> findings, const std::vector<Acceptance>& acceptances, const std::string& today) {
  Accepted result;
  std::vector<bool> used(acceptances.size());
  for (Finding& one : findings) {
    const Acceptance* by = nullptr;
    for (std::size_t i = 0; i < acceptances.size(); ++i) {
      const Acceptance& acceptance = acceptances[i];
      const bool named =
          one.verdict == Verdict::danger ? acceptance.id == one.id : util::glob_matches(acceptance.id, one.id);
      if (named && util::glob_matches(acceptance.device, one.device.raw())) {
        used[i] = true;
        by = acceptance.expires > today ? &acceptance : by;
      }
    }
    const bool counts = one.verdict == Verdict::danger || one.verdict == Verdict::advise;
    if (by != nullptr && counts) {
      one.why = fmt::format("accepted until {}: {}", by->expires, by->reason);
      result.accepted.push_back(std::move(one));
    } else {
      result.standing.push_back(std::move(one));
    }
  }
  for (std::size_t i = 0; i < acceptances.size(); ++i) {
    const Acceptance& one = acceptances[i];
    if (one.expires <= today) {
      result.words.push_back(
          fmt::format("the acceptance of {} on '{}' expired on {}", one.id, one.device, one.expires));
    } else if (!used[i]) {
      result.words.push_back(fmt::format("no finding matches the accepted {} on '{}'", one.id, one.device));
    }
  }
  return result;
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::localtime_r(&now, &parts);
  char text[16];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d", &parts)};
}

bool has_actionable(const std::vector<Finding>& findings) {
  return std::any_of(findings.begin(), findings.end(), [](const Finding& one) {
    return one.verdict == Verdict::danger || one.verdict == Verdict::advise;
  });
}

}  // namespace ssdpulse::advice
