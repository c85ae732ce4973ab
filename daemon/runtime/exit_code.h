// SPDX-License-Identifier: Apache-2.0
// What does the exit status tell the one who started us? Documented in README.md.
#pragma once

namespace ssdpulse::runtime {

enum class ExitCode : int {
  success = 0,        // stopped as asked
  failure = 1,        // something broke that should not, or may be whole a moment later
  usage = 2,          // command line or configuration is wrong
  not_permitted = 3,  // a privilege is missing, or the kernel is locked down
  kernel = 4,         // the kernel lacks what is needed (BTF, BPF, a known block layer)
  address = 5,        // cannot listen on the address
};

}  // namespace ssdpulse::runtime
