// SPDX-License-Identifier: Apache-2.0
// Why does the kernel refuse BPF to us, and what can be done? Pure.
#pragma once

#include <optional>
#include <string>

#include "daemon/util/result.h"

namespace ssdpulse::block {

/// What is known of a call that failed.
struct LoadRefusal {
  int error_number = 0;               // errno, or one of the kernel's own
  bool confidential = false;          // the kernel is locked down so far that nobody may read its memory
  bool verifier_spoke = false;        // it says why in `messages`
  std::string messages = {};          // the end of libbpf's own words
  std::optional<bool> compiles = {};  // net.core.bpf_jit_enable is not 0; nothing: not readable
};

/// For the log, and for the exit status.
util::Error explain(const LoadRefusal& refusal);

}  // namespace ssdpulse::block
