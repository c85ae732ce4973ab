// SPDX-License-Identifier: Apache-2.0
#include "daemon/advice/doctor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "daemon/advice/doctor_check.h"
#include "daemon/model/device_title.h"

namespace ssdpulse::advice {
namespace {

template <typename Facts>
Findings examine_all(const Facts& facts, std::span<const Check<Facts>> checks) {
  Findings all;
  for (const Check<Facts>& check : checks) {
    Findings found = check.run(facts);
    if (found.empty()) {
      found.push_back(finding(Verdict::ok, "", std::string(check.ok_text), ""));
    }
    for (Finding& finding : found) {
      finding.id = check.id;
      all.push_back(std::move(finding));
    }
  }
  return all;
}

struct Unanswered {
  const char* found;
  const char* change;
};

/// `status`: of HTTP, or EPERM; see unanswered().
Unanswered describe_status(int status) {
  switch (status) {
    case EPERM:
      return {"another user listens on the daemon's address",
              "ss -ltnp  # shows who; stop it, or ask by the unix socket"};
    case 401:
      return {"the daemon requires a user and a password", "put them into ~/.netrc"};
    case 403:
      return {"the daemon does not show this to everyone", "ask on its own host, or as a user with a password"};
    case 404:
      return {"the daemon does not show what it measures", "set web.page to true and restart the daemon"};
    case 421:
      return {"the daemon does not know the name it was addressed by",
              "ask by its IP address, or list the name in web.hosts"};
    case 503:
      return {"the daemon is starting or busy", "ask again in a few seconds"};
    default:
      return {"it is not known whether anything is measured", ""};
  }
}

}  // namespace

Finding not_stamped(const std::string& device) {
  auto one = finding(Verdict::advise, device, "no total and queue latency, and so no spikes",
                     "the kernel stamps none of its requests: queue/iostats is 0",
                     fmt::format("echo 1 > /sys/block/{}/queue/iostats", device));
  one.undo = fmt::format("echo 0 > /sys/block/{}/queue/iostats", device);
  one.risk = "the kernel reads its clock twice for each I/O, as it does by default";
  one.source = "Documentation/ABI/stable/sysfs-block";
  return one;
}

Finding no_kernel_symbols(std::string found, std::string why, std::string change) {
  auto one = finding(Verdict::advise, "", std::move(found), std::move(why), std::move(change));
  one.persistent = "echo kernel.kptr_restrict=1 > /etc/sysctl.d/60-ssdpulse.conf";
  one.undo = "sysctl kernel.kptr_restrict=2; rm -f /etc/sysctl.d/60-ssdpulse.conf";
  one.risk = "programs with CAP_SYSLOG see where the kernel's functions are";
  one.source = "Documentation/admin-guide/sysctl/kernel.rst, kptr_restrict";
  return one;
}

Findings examine(const model::Snapshot& snapshot) {
  Findings all = examine_all(snapshot, running_checks());
  for (Finding& finding : all) {
    if (std::any_of(snapshot.devices.begin(), snapshot.devices.end(),
                    [&](const model::DeviceSnapshot& device) { return finding.device == device.device->name; })) {
      finding.title = model::device_title(snapshot, finding.device.raw()).full;
    }
  }
  return all;
}

Findings examine(const Start& start) { return examine_all(start, host_checks()); }

bool has_gaps(const Findings& findings) {
  return std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.verdict == Verdict::danger || finding.verdict == Verdict::advise ||
           finding.verdict == Verdict::unknown;
  });
}

Finding unanswered(std::optional<int> status, const std::string& why) {
  const auto [found, change] =
      status ? describe_status(*status) : Unanswered{"nothing is measured", "systemctl enable --now ssdpulse"};
  // A daemon that answers may well be measuring.
  const auto verdict = status && status != EPERM ? Verdict::unknown : Verdict::danger;
  auto result = finding(verdict, "", found, why, change);
  result.id = "daemon";
  return result;
}

void FindingAges::observe(const model::Snapshot& snapshot) {
  constexpr std::uint64_t kSnapshotsBetween = 10;
  if (snapshot.number % kSnapshotsBetween != 1) {
    return;
  }
  std::map<Key, std::chrono::system_clock::time_point> now;
  const Findings findings = advice::examine(snapshot);
  const std::lock_guard lock(mutex_);
  for (const Finding& finding : findings) {
    if (finding.verdict != Verdict::ok) {
      const Key key{finding.id, finding.device, finding.found};
      const auto known = since_.find(key);
      now.emplace(key, known == since_.end() ? snapshot.taken_at : known->second);
    }
  }
  since_ = std::move(now);
}

Findings FindingAges::examine(const model::Snapshot& snapshot) const {
  Findings findings = advice::examine(snapshot);
  const std::lock_guard lock(mutex_);
  for (Finding& finding : findings) {
    const auto known = since_.find({finding.id, finding.device, finding.found});
    if (finding.verdict != Verdict::ok && !finding.since) {
      finding.since = known == since_.end() ? snapshot.taken_at : known->second;
    }
  }
  return findings;
}

}  // namespace ssdpulse::advice
