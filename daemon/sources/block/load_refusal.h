// SPDX-License-Identifier: Apache-2.0
// LoadRefusal: why the kernel refuses to load our BPF programs; explain() also says what can be done about it. Pure.
#pragma once

#include <optional>
#include <string>

#include "daemon/util/result.h"

namespace ssdpulse::block {

/// What is known about a call that failed.
struct LoadRefusal {
  int error_number = 0;               // errno, or an error number of the kernel's own
  bool confidential = false;          // the kernel is locked down so tightly that its memory cannot be read
  bool verifier_spoke = false;        // `messages` says why
  std::string messages = {};          // the end of libbpf's own messages
  std::optional<bool> compiles = {};  // net.core.bpf_jit_enable is not 0; absent: not readable
};

/// For the log, and for the exit status.
util::Error explain(const LoadRefusal& refusal);

}  // namespace ssdpulse::block
