// SPDX-License-Identifier: Apache-2.0
// What remains to the process that serves clients, once its programs are attached and its reader runs: its memory, its
// sockets, files to read and its history. Whoever took it over could do no more.
#pragma once

#include <string>

#include "daemon/util/result.h"

namespace ssdpulse::confinement {

/// Which new sockets may still be opened. A filter cannot see to whom: such a socket can be sent to any listener of its
/// kind that the user may reach.
struct Partners {
  bool log_reader = false;       // unix sockets of messages
  bool service_manager = false;  // unix datagrams
};

/// For good: no capability, nothing to open below /dev, nothing to write but in `history_directory` (made if its parent
/// is there; "": none), bpf() only to ask for information, no new program, no signal to others, no mount, no module, no
/// socket but to `partners`. Before there are other threads. A kernel without Landlock leaves opening files to the
/// user's rights: that is logged.
util::Result<void> confine(const std::string& history_directory, Partners partners);

/// The last part alone: the system calls that are refused.
util::Result<void> refuse_calls_of_others(Partners partners);

}  // namespace ssdpulse::confinement
