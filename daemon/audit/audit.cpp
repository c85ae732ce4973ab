// SPDX-License-Identifier: Apache-2.0
#include "daemon/audit/audit.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <tuple>
#include <utility>

#include "daemon/model/device_title.h"
#include "daemon/util/glob.h"

namespace ssdpulse::audit {
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

}  // namespace ssdpulse::audit
