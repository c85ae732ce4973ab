// SPDX-License-Identifier: Apache-2.0
// What is seen by hooks on functions of the kernel, which not every kernel allows.
#include "daemon/doctor/checks.h"

namespace ssdpulse::doctor {
namespace {

/// `consequence`: of not seeing what the kernel feature stands for.
Findings unless_hooked(const model::Snapshot& snapshot, model::KernelFeature feature, const char* consequence) {
  if (!decided(snapshot.kernel_features, feature, model::KernelDecision::not_hooked)) {
    return {};
  }
  return {finding(model::Verdict::info, "", consequence,
                  "the kernel's functions could not be hooked; the log of the daemon's start says why",
                  "a kernel with CONFIG_FUNCTION_TRACER and BTF")};
}

Findings discard_submitters(const model::Snapshot& snapshot) {
  return unless_hooked(snapshot, model::KernelFeature::discard_submitters,
                       "who submits discards is not known: all have trigger=other");
}

Findings freezes(const model::Snapshot& snapshot) {
  return unless_hooked(snapshot, model::KernelFeature::freezes, "a frozen file system is not noticed");
}

}  // namespace

const RunningCheck kDiscardSubmitters{"discard-triggers", "who submits discards is seen", discard_submitters};
const RunningCheck kFreezes{"freezes", "freezes of file systems are seen", freezes};

}  // namespace ssdpulse::doctor
