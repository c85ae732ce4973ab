// SPDX-License-Identifier: Apache-2.0
// What is seen by hooks on functions of the kernel, which not every kernel allows.
#include "daemon/doctor/checks.h"

namespace ssdpulse::doctor {
namespace {

/// `consequence`: of not seeing what the kernel feature stands for.
Findings unless_seen(const model::Snapshot& snapshot, const char* feature, const char* consequence) {
  const auto known = snapshot.kernel_features.find(feature);
  if (known == snapshot.kernel_features.end() || known->second != "unseen") {
    return {};
  }
  return {finding(model::Verdict::info, "", consequence,
                  "the kernel's functions could not be hooked; the log of the daemon's start says why",
                  "a kernel with CONFIG_FUNCTION_TRACER and BTF")};
}

Findings discard_submitters(const model::Snapshot& snapshot) {
  return unless_seen(snapshot, "discard_submitters", "who submits discards is not known: all have trigger=other");
}

Findings freezes(const model::Snapshot& snapshot) {
  return unless_seen(snapshot, "freezes", "a frozen file system is not noticed");
}

}  // namespace

const RunningCheck kDiscardSubmitters{"discard-triggers", "who submits discards is seen", discard_submitters};
const RunningCheck kFreezes{"freezes", "freezes of file systems are seen", freezes};

}  // namespace ssdpulse::doctor
