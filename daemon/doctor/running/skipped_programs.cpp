// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "daemon/doctor/checks.h"

namespace ssdpulse::doctor {
namespace {

Findings skipped_programs(const model::Snapshot& snapshot) {
  Findings found;
  for (const model::ProgramStats& program : snapshot.programs) {
    if (program.recursion_misses.value_or(0) > 0) {
      auto one = finding(model::Verdict::info, "", fmt::format("the kernel skipped the program {}", program.name),
                         "it was needed while another one ran on the same CPU");
      one.evidence = {{"skipped_runs", static_cast<double>(*program.recursion_misses)}};
      found.push_back(std::move(one));
    }
  }
  if (found.empty() &&
      decided(snapshot.kernel_features, model::KernelFeature::skipped_runs, model::KernelDecision::not_reported)) {
    found.push_back(finding(model::Verdict::info, "", "how often the kernel skipped a program is not known",
                            "this kernel does not count it (Linux 5.12 does)"));
  }
  return found;
}

}  // namespace

const RunningCheck kSkippedPrograms{"skipped-programs", "the kernel skipped none of our programs", skipped_programs};

}  // namespace ssdpulse::doctor
