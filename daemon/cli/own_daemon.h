// SPDX-License-Identifier: Apache-2.0
// OwnDaemon: a private `ssdpulse run` for a command that finds no daemon, on a socket that nobody else can reach.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "daemon/base/file_descriptor.h"
#include "daemon/base/result.h"
#include "daemon/config/config.h"

namespace ssdpulse::cli {

/// A child of this process, in a session of its own: keys that stop or end a command do not reach it. It ends with this
/// object, and also with this process, however that ends, even by SIGKILL. It leaves no file and no BPF program behind.
/// Only for the process's first thread: the kernel watches the thread that started a child. Not thread-safe.
class OwnDaemon {
 public:
  /// Starts this program again, as root, and does not wait for it. `wanted`: what is measured and how, except that
  /// there is no history, no flash model and no service that reads log pages, and that it serves on a socket whose file
  /// is already gone. Sets this process's SIGCHLD to its default.
  static util::Result<std::unique_ptr<OwnDaemon>> start(config::Config wanted);
  ~OwnDaemon();
  OwnDaemon(const OwnDaemon&) = delete;
  OwnDaemon& operator=(const OwnDaemon&) = delete;

  /// For Where::address. Valid only in this process.
  [[nodiscard]] std::string address() const;

  /// Waits this long for its first answer, which comes once it measures. Error: it has ended, in its own words, or no
  /// longer serves anybody.
  util::Result<bool> answers_within(std::chrono::milliseconds timeout);

  /// Why it ended by itself, in its own words; nothing: it is running.
  std::optional<std::string> ending();

 private:
  OwnDaemon(pid_t child, util::UniqueFd socket_file, util::UniqueFd log, util::UniqueFd first);

  pid_t child_;
  bool ended_ = false;  // and was waited for
  std::string ending_;  // why it ended
  bool answered_ = false;
  util::UniqueFd socket_file_;  // O_PATH: the way to a socket without a name
  util::UniqueFd log_;          // what it writes to stderr
  util::UniqueFd first_;        // a connection whose answer shows that it serves
};

}  // namespace ssdpulse::cli
