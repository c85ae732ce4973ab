// SPDX-License-Identifier: Apache-2.0
// run_nvme_reader(): `ssdpulse nvme-reader`, two processes with the one capability that the daemon gave up. A worker
// does what the daemon asks; its supervisor only restarts the worker when it dies, because the daemon no longer could.
// Started by the daemon, both end with it; started by a service manager, with a socket to listen on, they serve one
// client after the other. Neither waits for a drive before it exits. Of the system calls, all but the few that they
// need are refused: of what CAP_SYS_ADMIN permits, only sending admin commands remains, and files can only be read. No
// filter can inspect a command: the worker controls which commands are sent (drive_commands.h).
#pragma once

#include <chrono>
#include <functional>

#include "daemon/base/result.h"

namespace ssdpulse::nvme_reader {

/// Permanently, for the calling process and its children.
util::Result<void> allow_only_reader_calls();

/// After that, in the worker, which receives messages from outside: it can neither start nor signal another process.
util::Result<void> refuse_supervisor_calls();

/// Success when the daemon closed the socket; usage without a message socket (started by hand).
util::ExitCode run_nvme_reader(int socket);

/// Runs `work` in a process of its own, and again each time that it dies, at most once per `pause`; notifies the other
/// end of the socket each time. Returns true when that end is closed, or false if supervision is impossible. Clients
/// that connect to `listener` (-1: none) meanwhile are turned away. To be called while the process has one thread.
bool supervise(int socket, const std::function<void()>& work, std::chrono::milliseconds pause, int listener = -1);

/// Supervises work(client) for one client after the other; returns only on a failure.
void serve_clients(int listener, const std::function<void(int)>& work, std::chrono::milliseconds pause);

}  // namespace ssdpulse::nvme_reader
