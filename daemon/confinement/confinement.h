// SPDX-License-Identifier: Apache-2.0
// confine(): limits the process that serves clients to what it still needs once its programs are attached and its
// reader runs: its memory, its sockets, files to read and its history. An attacker who took it over could use no more.
#pragma once

#include <string>

#include "daemon/util/result.h"

namespace ssdpulse::confinement {

/// Which new sockets may still be opened. A filter cannot see the peer: such a socket can send to any listener of its
/// kind that the user may reach.
struct Partners {
  bool log_reader = false;       // unix sockets for messages (SOCK_SEQPACKET)
  bool service_manager = false;  // unix datagrams
  bool later_clients = false;    // an open socket waits for its address: bind() and listen() are allowed
};

/// Permanently: no capability, nothing opened below /dev except null and urandom, no file written except in
/// `history_directory` (made if its parent exists; "": none), bpf() only to ask for information, no new program, no
/// signal to others, no mount, no module, no socket except to `partners`. Call it before there are other threads.
/// Without Landlock in the kernel, only the user's rights limit which files can be opened: as root, that is logged.
util::Result<void> confine(const std::string& history_directory, Partners partners);

/// The last step of confine() alone: refuses the system calls.
util::Result<void> refuse_calls_of_others(Partners partners);

}  // namespace ssdpulse::confinement
