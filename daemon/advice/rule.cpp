// SPDX-License-Identifier: Apache-2.0
#include "daemon/advice/rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace ssdpulse::advice {
namespace {

Finding make(Verdict verdict, std::string found, std::string why) {
  Finding finding;
  finding.verdict = verdict;
  finding.found = std::move(found);
  finding.why = std::move(why);
  return finding;
}

struct UdevMatch {
  std::string keys;       // of a rule
  std::string file_name;  // a part of it
};

/// sda may be another disk after a reboot: SCSI disks are matched by their own identification, which contains the
/// serial number or a name given by the vendor. Nothing if there is none, or if it has a character that is special in
/// udev's patterns.
std::optional<UdevMatch> udev_match(const DiskSettings& disk) {
  const auto is_plain = [](char c) {
    const bool alphanumeric = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    return alphanumeric || std::string_view(" !-./:_").find(c) != std::string_view::npos;
  };
  const bool scsi = disk.device.name.starts_with("sd");
  const std::string& identity = scsi ? disk.device.wwid.raw() : disk.device.name;
  if (identity.empty() || !std::all_of(identity.begin(), identity.end(), is_plain)) {
    return std::nullopt;
  }
  std::string file_name = identity;
  std::replace_if(
      file_name.begin(), file_name.end(), [](char c) { return c == ' ' || c == '/' || c == '!'; }, '_');
  return UdevMatch{scsi ? fmt::format(R"(KERNEL=="sd*", ATTR{{device/wwid}}=="{}")", identity)
                        : fmt::format(R"(KERNEL=="{}")", identity),
                   file_name};
}

/// A spike is booked when it ends, after ten minutes at the latest, or later if few I/Os end. Until then its waiting is
/// pending, without a cause; here it is charged to the cause of the ongoing spike.
std::optional<double> spike_excess_per_day(const Facts& facts, const std::string& device, Operation operation,
                                           SpikeCause cause) {
  const MeasuredSpikes& spikes = facts.measured.device(device).spikes[operation];
  const Figure pending = spikes.active_cause == cause ? spikes.pending_excess_seconds : std::nullopt;
  if (const DeviceEvidence* past = evidence_of(facts, device)) {
    return past->excess_per_day(operation, cause, pending.value_or(0));
  }
  const auto booked = facts.measured.per_day(spikes.excess_seconds[index(cause)]);
  return booked ? std::optional(*booked + facts.measured.per_day(pending).value_or(0)) : std::nullopt;
}

}  // namespace

Finding ok(std::string found) { return make(Verdict::ok, std::move(found), ""); }
Finding info(std::string found, std::string why) { return make(Verdict::info, std::move(found), std::move(why)); }
Finding danger(std::string found, std::string why) { return make(Verdict::danger, std::move(found), std::move(why)); }
Finding unknown(std::string found, std::string why) { return make(Verdict::unknown, std::move(found), std::move(why)); }
Finding not_applicable(std::string why) { return make(Verdict::not_applicable, "does not apply", std::move(why)); }

Finding unknown_for_options(std::string found) {
  return unknown(
      std::move(found),
      "its super block may ask for options that /proc/self/mountinfo does not show, and they cannot be read");
}

std::vector<const DiskSettings*> disks_named(const Facts& facts, const std::vector<std::string>& names) {
  std::vector<const DiskSettings*> disks;
  for (const DiskSettings& disk : facts.settings.disks) {
    if (std::find(names.begin(), names.end(), disk.device.name) != names.end()) {
      disks.push_back(&disk);
    }
  }
  return disks;
}

bool any_accepts_discards(const Facts& facts, const std::vector<std::string>& disks) {
  const auto below = disks_named(facts, disks);
  return std::any_of(below.begin(), below.end(), [](const DiskSettings* disk) { return disk->device.discard; });
}

std::string drive_of(const Facts& facts, const DiskSettings& disk) {
  const std::string& reported = facts.measured.device(disk.device.name).controller;
  return reported.empty() ? disk.controller_name : reported;
}

bool is_unseen(const Facts& facts, const DiskSettings& disk) {
  return !disk.device.has_requests || facts.measured.device(disk.device.name).unseen;
}

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

std::optional<double> excess_per_day(const Facts& facts, const std::string& device,
                                     const std::vector<SpikeCause>& causes) {
  std::optional<double> total;
  for (const SpikeCause cause : causes) {
    // Not commits: they consist of flushes and writes, which are counted here.
    for (const auto operation : {Operation::read, Operation::write, Operation::flush}) {
      add_figure(total, spike_excess_per_day(facts, device, operation, cause));
    }
  }
  return total;
}

std::optional<double> bytes_per_day(const Facts& facts, const std::string& device, Operation operation) {
  const auto bytes = bytes_of(facts, device, operation);
  const DeviceEvidence* past = evidence_of(facts, device);
  return past != nullptr ? past->per_day(bytes.value_or(0)) : facts.measured.per_day(bytes);
}

std::optional<double> bytes_of(const Facts& facts, const std::string& device, Operation operation) {
  if (const DeviceEvidence* past = evidence_of(facts, device)) {
    return static_cast<double>(past->load.operations.at(model::index(operation)).bytes);
  }
  return facts.measured.device(device).operation(operation).bytes;
}

std::optional<double> write_amplification_at_least(const Facts& facts, const DiskSettings& disk) {
  const MeasuredDrive& drive = facts.measured.drive(drive_of(facts, disk));
  return drive.write_amplification_lower_7d ? drive.write_amplification_lower_7d : drive.write_amplification_lower_24h;
}

std::optional<double> write_amplification_at_least(const Facts& facts, const std::vector<std::string>& disks) {
  std::optional<double> largest;
  for (const DiskSettings* disk : disks_named(facts, disks)) {
    largest = std::max(largest, write_amplification_at_least(facts, *disk));
  }
  return largest;
}

std::optional<double> random_share(const MeasuredOperation& reads) {
  const auto sequential = ratio(reads.sequential_bytes, reads.bytes);
  return sequential ? std::optional(1 - *sequential) : std::nullopt;
}

std::optional<double> mean(const Distribution& values) { return ratio(values.sum, values.count); }

std::optional<double> ratio(std::optional<double> part, std::optional<double> whole) {
  return part && whole && *whole > 0 ? std::optional(*part / *whole) : std::nullopt;
}

Evidence excess_evidence(const Facts& facts, const DiskSettings& disk, const std::vector<SpikeCause>& causes) {
  return {"excess_seconds_per_day", excess_per_day(facts, disk.device.name, causes), kExcessLimit};
}

Finding weigh(const Facts& facts, Finding bad, const std::vector<Evidence>& evidence) {
  bool measured = true;
  bool enough = true;
  for (const Evidence& figure : evidence) {
    measured = measured && figure.value.has_value();
    if (figure.value) {
      bad.evidence[figure.name] = *figure.value;
      enough = enough && *figure.value >= figure.limit;
      if (figure.name == "excess_seconds_per_day") {
        bad.excess_seconds_per_day = figure.value;
      } else if (figure.name == "wear_bytes_per_day") {
        bad.wear_bytes_per_day = figure.value;
      }
    }
  }
  bad.verdict = Verdict::info;
  if (!facts.measured.answered && facts.evidence.empty()) {
    bad.why += "; what it costs here is not known: no daemon answers";
  } else if (!measured) {
    bad.why += "; what it costs here is not measured";
  } else if (!enough) {
    bad.why += "; here it costs too little to be worth a change";
  } else {
    bad.verdict = Verdict::advise;
    bad.proof = "ssdpulse report --change last";
  }
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
  std::string name = disk.device.name;
  std::replace(name.begin(), name.end(), '/', '!');  // the device's node has a slash there
  return fmt::format("/sys/block/{}/{}", name, file);
}

void change_file(Finding& finding, const DiskSettings& disk, const std::string& file, const std::string& value,
                 const std::string& before) {
  const auto path = word_or_why(sysfs_path(disk, file), finding);
  if (!path) {
    return;
  }
  finding.change = fmt::format("echo {} > {}", util::for_shell(value).value_or(value), *path);
  const auto former = util::for_shell(before.empty() ? disk.files.chosen(file) : before);
  finding.undo = former ? fmt::format("echo {} > {}", *former, *path) : "";
  const auto match = udev_match(disk);
  if (!match) {
    finding.why += "; no udev rule is given: nothing distinguishes the disk from one that gets its name later";
    return;
  }
  const auto rule =
      util::for_shell(fmt::format(R"(ACTION=="add|change", {}, ATTR{{{}}}="{}")", match->keys, file, value));
  const auto rule_file = util::for_shell(
      fmt::format("/etc/udev/rules.d/60-ssdpulse-{}-{}.rules", match->file_name, file.substr(file.rfind('/') + 1)));
  finding.persistent = fmt::format("echo {} > {}", *rule, *rule_file);
  finding.undo += former ? fmt::format("; rm -f {}", *rule_file) : "";
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

}  // namespace ssdpulse::advice
