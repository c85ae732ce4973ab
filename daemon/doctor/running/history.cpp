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
  one.risk = "about 1 KB a minute for each drive";
  return {one};
}

}  // namespace

const RunningCheck kHistory{"history", "a history is kept", history};

}  // namespace ssdpulse::doctor
