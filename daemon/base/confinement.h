// SPDX-License-Identifier: Apache-2.0
// keep_capabilities(): gives up the capabilities of this process once it needs few or none.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "daemon/base/result.h"

namespace ssdpulse::confinement {

/// Gives up every capability except those of `wanted` (CAP_...) that the process has: in all sets, in the bounding set
/// if permitted, and with no way to regain any (no_new_privs). The process need not have any of `wanted`.
/// Applies to the calling thread and to threads started later: call it before there are others.
util::Result<void> keep_capabilities(std::span<const int> wanted);

// Restricts which files this process can still open, whatever user it runs as. Uses Landlock, because root without
// capabilities can still open root's files, including device nodes.

enum class FileAccess : std::uint8_t { restricted, unrestricted };

/// From now on, for the calling thread and those that it starts: below /dev only null and urandom can be opened, and
/// nothing can be written, made or removed except below `writable`, an existing directory ("": none). `unrestricted`:
/// this kernel has no Landlock (before Linux 5.13, or switched off), and nothing has changed.
/// Needs no_new_privs.
util::Result<FileAccess> restrict_file_access(const std::string& writable);

// confine(): limits the process that serves clients to what it still needs once its programs are attached and its
// reader runs: its memory, its sockets, files to read and its history. An attacker who took it over could use no more.

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
