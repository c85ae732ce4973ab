// SPDX-License-Identifier: Apache-2.0
#include "daemon/doctor/checks.h"

namespace ssdpulse::doctor {
namespace {

Findings freezes(const model::Snapshot& snapshot) {
  const auto known = snapshot.kernel_features.find("freezes");
  if (known == snapshot.kernel_features.end() || known->second != "unseen") {
    return {};
  }
  return {finding(model::Verdict::info, "", "a frozen file system is not noticed",
                  "the kernel's functions could not be hooked; the log of the daemon's start says why",
                  "a kernel with CONFIG_FUNCTION_TRACER and BTF")};
}

}  // namespace

const RunningCheck kFreezes{"freezes", "freezes of file systems are seen", freezes};

}  // namespace ssdpulse::doctor
