// SPDX-License-Identifier: Apache-2.0
#include "daemon/doctor/checks.h"
#include "daemon/doctor/findings_of_both.h"

namespace ssdpulse::doctor {
namespace {

Findings kernel_symbols(const Start& start) {
  if (!start.host.kptr_restrict) {
    return {finding(model::Verdict::unknown, "", "kernel.kptr_restrict", "it is not readable")};
  }
  if (*start.host.kptr_restrict < 2) {
    return {};
  }
  return {no_kernel_symbols("classes of writes would be guessed from flags and pages alone",
                            "kernel.kptr_restrict is 2: the kernel hides where its functions are",
                            "sysctl kernel.kptr_restrict=1")};
}

}  // namespace

const HostCheck kKernelSymbols{"kptr-restrict", "the kernel's symbols can be read", kernel_symbols};

}  // namespace ssdpulse::doctor
