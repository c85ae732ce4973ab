// SPDX-License-Identifier: Apache-2.0
// Check: one test of `doctor`. It returns the problems that it finds; none if all is well. Pure. A new one is a
// function and a row of the table at the end of running_checks.cpp or host_checks.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "daemon/advice/doctor.h"

namespace ssdpulse::advice {

using model::Finding;
using model::Verdict;

template <typename Facts>
struct Check {
  std::string_view id;       // stable; of letters, digits and hyphens
  std::string_view ok_text;  // what to say if nothing is wrong
  Findings (*run)(const Facts&);
};
using RunningCheck = Check<model::Snapshot>;
using HostCheck = Check<Start>;

// In the order in which their findings are shown.
std::span<const RunningCheck> running_checks();
std::span<const HostCheck> host_checks();  // of a host without a running daemon

/// Its id is filled in by examine(). The fields are explained in model/finding.h.
inline Finding finding(Verdict verdict, std::string device, std::string found, std::string why,
                       std::string change = "") {
  Finding made;
  made.verdict = verdict;
  made.device = std::move(device);
  made.found = std::move(found);
  made.why = std::move(why);
  made.change = std::move(change);
  return made;
}

// Of both: the remedy, and what it costs, is written only once.

/// The kernel does not stamp the requests of this device.
Finding not_stamped(const std::string& device);

/// The kernel shows no addresses of its functions. `found`, `why` and `change`: in the words of the caller.
Finding no_kernel_symbols(std::string found, std::string why, std::string change);

}  // namespace ssdpulse::advice
