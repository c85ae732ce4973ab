// SPDX-License-Identifier: Apache-2.0
#include "daemon/doctor/checks.h"
#include "daemon/doctor/findings_of_both.h"

namespace ssdpulse::doctor {
namespace {

Findings write_classes(const model::Snapshot& snapshot) {
  if (!decided(snapshot.kernel_features, model::KernelFeature::write_class, model::KernelDecision::flags_and_pages)) {
    return {};
  }
  return {no_kernel_symbols(
      "classes of writes are guessed from flags and pages alone",
      "the kernel showed no addresses in /proc/kallsyms: kernel.kptr_restrict is 2, or CAP_SYSLOG is missing",
      "sysctl kernel.kptr_restrict=1 && systemctl restart ssdpulse")};
}

}  // namespace

const RunningCheck kWriteClasses{"write-classes", "journal, metadata and data are separate", write_classes};

}  // namespace ssdpulse::doctor
