// SPDX-License-Identifier: Apache-2.0
#include "daemon/doctor/checks.h"

namespace ssdpulse::doctor {
namespace {

Findings discard_submitters(const model::Snapshot& snapshot) {
  const auto known = snapshot.kernel_features.find("discard_submitters");
  if (known == snapshot.kernel_features.end() || known->second != "unseen") {
    return {};
  }
  return {finding(model::Verdict::info, "", "who submits discards is not known: all have trigger=other",
                  "this kernel allows no function hooks (CONFIG_FUNCTION_TRACER, or the function is inlined)",
                  "a kernel with CONFIG_FUNCTION_TRACER and BTF")};
}

}  // namespace

const RunningCheck kDiscardSubmitters{"discard-triggers", "who submits discards is seen", discard_submitters};

}  // namespace ssdpulse::doctor
