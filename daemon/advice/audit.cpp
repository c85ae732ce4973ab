// SPDX-License-Identifier: Apache-2.0
#include "daemon/advice/audit.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <tuple>
#include <utility>

#include "daemon/base/glob.h"
#include "daemon/base/number_text.h"
#include "daemon/model/device_title.h"

namespace ssdpulse::advice {
namespace {

/// The position of a rule in the list: by letter, then by number.
auto position(const Rule& rule) {
  return std::tuple(std::string_view("QNF").find(rule.id.front()), rule.id.size(), rule.id);
}

std::vector<Rule> all_rules() {
  std::vector<Rule> all;
  for (const auto area :
       {queue_rules(), drive_rules(), array_rules(), trim_rules(), file_system_rules(), host_rules()}) {
    all.insert(all.end(), area.begin(), area.end());
  }
  std::sort(all.begin(), all.end(), [](const Rule& a, const Rule& b) { return position(a) < position(b); });
  return all;
}

/// Sets for how long the daemon or the history has measured all the disks that the finding is about.
void note_time(const Facts& facts, const Rule& rule, const std::vector<std::string>& disks, Finding& finding) {
  std::optional<double> observed;
  for (const std::string& disk : disks) {
    const double seconds = observed_seconds(facts, disk, rule.by_history);
    observed = std::min(observed.value_or(seconds), seconds);
    if (rule.by_history && evidence_of(facts, disk) != nullptr) {
      finding.observer = model::Observer::history;
    }
  }
  finding.observed_seconds = observed ? observed : facts.measured.observed_seconds;
}

void withdraw_early_advice(const Facts& facts, const Rule& rule, Finding& finding) {
  const double needed = static_cast<double>(facts.enough.count()) * rule.days;
  if (finding.verdict == Verdict::advise && rule.days > 0 && finding.observed_seconds.value_or(0) < needed) {
    finding.verdict = Verdict::info;
    finding.proof.clear();
    finding.why += fmt::format("; not weighed yet: observed for {} of {}",
                               util::duration_text(finding.observed_seconds.value_or(0)), util::duration_text(needed));
  }
}

void add(std::vector<Finding>& all, const Facts& facts, const Rule& rule, const util::OutsideText& device,
         const std::vector<std::string>& disks, Finding finding) {
  if (!finding.evidence.empty()) {
    if (finding.observer != model::Observer::kernel) {
      note_time(facts, rule, disks, finding);
    }
    withdraw_early_advice(facts, rule, finding);
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

auto urgency(const Finding& finding) {
  return std::tuple(finding.verdict, -finding.excess_seconds_per_day.value_or(0),
                    -finding.wear_bytes_per_day.value_or(0));
}

}  // namespace

const std::vector<Rule>& rules() {
  static const auto& all = *new std::vector<Rule>(all_rules());
  return all;
}

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
  std::stable_sort(all.begin(), all.end(), [](const Finding& a, const Finding& b) { return urgency(a) < urgency(b); });
  return all;
}

bool is_actionable(const Finding& finding) {
  return finding.verdict == Verdict::danger || finding.verdict == Verdict::advise;
}

bool has_actionable(const std::vector<Finding>& findings) {
  return std::any_of(findings.begin(), findings.end(), is_actionable);
}

Accepted accept(std::vector<Finding> findings, const std::vector<Acceptance>& acceptances, const std::string& today) {
  Accepted result;
  std::vector<bool> used(acceptances.size());
  for (Finding& finding : findings) {
    const Acceptance* by = nullptr;
    for (std::size_t i = 0; i < acceptances.size(); ++i) {
      const Acceptance& acceptance = acceptances[i];
      const bool named = finding.verdict == Verdict::danger ? acceptance.id == finding.id
                                                            : util::glob_matches(acceptance.id, finding.id);
      if (named && util::glob_matches(acceptance.device, finding.device.raw())) {
        used[i] = true;
        by = acceptance.expires > today ? &acceptance : by;
      }
    }
    if (by != nullptr && is_actionable(finding)) {
      finding.why = fmt::format("accepted until {}: {}", by->expires, by->reason);
      result.accepted.push_back(std::move(finding));
    } else {
      result.standing.push_back(std::move(finding));
    }
  }
  for (std::size_t i = 0; i < acceptances.size(); ++i) {
    const auto& [id, device, reason, expires] = acceptances[i];
    if (expires <= today) {
      result.problems.push_back(fmt::format("the acceptance of {} on '{}' expired on {}", id, device, expires));
    } else if (!used[i]) {
      result.problems.push_back(fmt::format("no finding matches the accepted {} on '{}'", id, device));
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

}  // namespace ssdpulse::advice
