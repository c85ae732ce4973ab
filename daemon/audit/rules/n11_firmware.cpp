// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <sstream>

#include "daemon/audit/known_bad_firmware.h"
#include "daemon/audit/rules/rules.h"
#include "daemon/util/glob.h"

namespace ssdpulse::audit {
namespace {

struct BadFirmware {
  std::string model;     // shell pattern
  std::string firmware;  // shell pattern
  Verdict verdict = Verdict::danger;
  std::optional<std::uint64_t> hours;  // at which it fails
  std::string words;
  std::string source;
};

std::vector<BadFirmware> read_table() {
  std::vector<BadFirmware> table;
  std::istringstream lines(kKnownBadFirmware);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.front() == '#') {
      continue;
    }
    std::istringstream fields(line);
    std::array<std::string, 6> field;
    for (std::string& one : field) {
      std::getline(fields, one, '|');
      one = one.substr(0, one.find_last_not_of(' ') + 1);
      one.erase(0, one.find_first_not_of(' '));
    }
    model::Attributes hours;
    hours.set("", field[3]);
    table.push_back({field[0], field[1], field[2] == "danger" ? Verdict::danger : Verdict::info, hours.number(""),
                     field[4], field[5]});
  }
  return table;
}

Finding firmware(const Facts& facts, const DiskSettings& disk) {
  const util::OutsideText& revision = disk.device.firmware;
  if (disk.device.model.empty() || revision.empty()) {
    return disk.device.transport == "nvme" || disk.device.transport == "sata"
               ? unknown("its firmware", "neither sysfs nor the drive reports it")
               : not_applicable("it has no firmware of its own");
  }
  static const auto& table = *new std::vector<BadFirmware>(read_table());
  for (const BadFirmware& bad : table) {
    if (!util::glob_matches(bad.model, disk.device.model.raw()) || !util::glob_matches(bad.firmware, revision.raw())) {
      continue;
    }
    Finding finding = info("firmware " + util::for_json(revision) + " of " + util::for_json(disk.device.model),
                           bad.words + " (" + bad.source + ")");
    finding.verdict = bad.verdict;
    const auto on = facts.measured.drive(drive_of(facts, disk)).power_on_seconds;
    if (bad.hours && on) {
      finding.evidence["hours_left"] = static_cast<double>(*bad.hours) - *on / 3600;
    }
    finding.change = "a backup first, then the vendor's newer firmware";
    finding.risk = "a failed update can cost the drive";
    return finding;
  }
  return ok("firmware " + util::for_json(revision) + " is not known to be bad");
}

}  // namespace

const Rule kN11{.id = "N11",
                .title = "Firmware that is known to be bad",
                .limit = "danger where the table of known bad firmware says so",
                .source = "daemon/audit/known_bad_firmware.txt, with a source for each",
                .of_disk = firmware};

}  // namespace ssdpulse::audit
