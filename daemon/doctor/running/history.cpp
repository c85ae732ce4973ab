// SPDX-License-Identifier: Apache-2.0
#include "daemon/doctor/checks.h"

namespace ssdpulse::doctor {
namespace {

Findings history(const model::Snapshot& snapshot) {
  if (snapshot.history) {
    return {};
  }
  auto one = finding(model::Verdict::info, "", "nothing older than the last 15 minutes is kept",
                     "history.directory is empty", "name a directory in history.directory and restart the daemon");
  one.risk = "about 1.6 kB a minute for each busy drive, at most history.size";
  return {one};
}

}  // namespace

const RunningCheck kHistory{"history", "a history is kept", history};

}  // namespace ssdpulse::doctor
