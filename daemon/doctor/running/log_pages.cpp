// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "daemon/doctor/checks.h"

namespace ssdpulse::doctor {
namespace {

Findings log_pages(const model::Snapshot& snapshot) {
  Findings found;
  for (const model::NvmeDrive& drive : snapshot.nvme_drives) {
    for (const auto& [page, reason] : drive.polling.refused_pages) {
      found.push_back(finding(model::Verdict::info, drive.identity->controller,
                              fmt::format("log page {} is not read", page), reason));
    }
  }
  return found;
}

}  // namespace

const RunningCheck kLogPages{"log-pages", "no drive refuses a log page", log_pages};

}  // namespace ssdpulse::doctor
