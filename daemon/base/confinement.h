// SPDX-License-Identifier: Apache-2.0
// Limits the process that serves clients to what it still needs once its programs are attached and its reader runs: its
// memory, its sockets, files to read and its history. An attacker who took it over could use no more. confine() does
// all of it; the other functions are its steps. All of them apply to the calling thread and to threads started later:
// call them before there are others.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "daemon/base/result.h"

namespace ssdpulse::confinement {

/// Drops every capability except those of `wanted` (CAP_...) that the process has: in all sets, in the bounding set if
/// permitted, and with no way to regain any (no_new_privs). The process need not have any of `wanted`.
util::Result<void> keep_capabilities(std::span<const int> wanted);

enum class FileAccess : std::uint8_t { restricted, unrestricted };

/// Restricts which files can still be opened, whatever user the process runs as: below /dev only null and urandom, and
/// nothing can be written, made or removed except below `writable`, an existing directory ("": none). Uses Landlock,
/// because root without capabilities can still open root's files, including device nodes. `unrestricted`: this kernel
/// has no Landlock (before Linux 5.13, or switched off), and nothing has changed. Needs no_new_privs.
util::Result<FileAccess> restrict_file_access(const std::string& writable);

/// Which new sockets may still be opened. A filter cannot see the peer: such a socket can send to any listener of its
/// kind that the user may reach.
struct Partners {
  bool log_reader = false;       // unix sockets for messages (SOCK_SEQPACKET)
  bool service_manager = false;  // unix datagrams
  bool later_clients = false;    // an open socket waits for its address: bind() and listen() are allowed
};

/// Permanently: no capability, nothing opened below /dev except null and urandom, no file written except in
/// `history_directory` (made if its parent exists; "": none), bpf() only to ask for information, no new program, no
/// signal to others, no mount, no module, no socket except to `partners`.
/// Without Landlock in the kernel, only the user's rights limit which files can be opened: as root, that is logged.
util::Result<void> confine(const std::string& history_directory, Partners partners);

/// The last step of confine() alone: refuses the system calls.
util::Result<void> refuse_calls_of_others(Partners partners);

}  // namespace ssdpulse::confinement
