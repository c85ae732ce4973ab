// SPDX-License-Identifier: Apache-2.0
// Check: one test of `doctor`. It returns the problems that it finds; none if all is well. A new one needs a file in
// `running` or `host`, and a line each in checks.h and check_list.cpp.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "daemon/doctor/doctor.h"

namespace ssdpulse::doctor {

template <typename Facts>
struct Check {
  std::string_view id;       // stable; of letters, digits and hyphens
  std::string_view ok_text;  // what to say if nothing is wrong
  Findings (*run)(const Facts&);
};
using RunningCheck = Check<model::Snapshot>;
using HostCheck = Check<Start>;

/// Its id is filled in by examine(). The fields are explained in model/finding.h.
inline model::Finding finding(model::Verdict verdict, std::string device, std::string found, std::string why,
                              std::string change = "") {
  model::Finding made;
  made.verdict = verdict;
  made.device = std::move(device);
  made.found = std::move(found);
  made.why = std::move(why);
  made.change = std::move(change);
  return made;
}

}  // namespace ssdpulse::doctor
