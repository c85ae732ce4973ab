// SPDX-License-Identifier: Apache-2.0
// What do the commands do that ask a running daemon? Each returns whether it got its answer; trouble goes to stderr.
#pragma once

#include <string>

#include "daemon/client/api.h"

namespace ssdpulse::client {

/// The first line, and what to do next; of now, or of the time `at` (see time_text.h).
bool why(const Where& where, const config::Web& web, const std::string& at, bool json);

struct TopOptions {
  bool once = false;  // one screen as text, without a terminal
  bool json = false;  // the answer itself
};

bool top(const Where& where, const config::Web& web, const TopOptions& options);

}  // namespace ssdpulse::client
