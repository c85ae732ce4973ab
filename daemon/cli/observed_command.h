// SPDX-License-Identifier: Apache-2.0
// ObservedCommand: a command that `ssdpulse report` runs to see what it does. As with time(1) or timeout(1), its input,
// its output and its exit status are what they would be without us.
#pragma once

#include <signal.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "daemon/base/result.h"
#include "daemon/model/history_answers.h"

namespace ssdpulse::cli {

// As of timeout(1) and env(1).
inline constexpr int kNotRun = 125;  // we failed
inline constexpr int kNotExecutable = 126;
inline constexpr int kNotFound = 127;
inline constexpr int kKilledBy = 128;  // and the number of the signal

/// While it exists, the signals that would end this process wait: until then, they are the command's. To be made before
/// the first thread, which inherits that.
class ObservedCommand {
 public:
  ObservedCommand();
  ~ObservedCommand();
  ObservedCommand(const ObservedCommand&) = delete;
  ObservedCommand& operator=(const ObservedCommand&) = delete;

  struct Ran {
    model::WallTime began;
    model::WallTime ended;
    int status = 0;  // as a shell has it
  };

  /// Runs it to its end. Signals that are sent to this process are passed on; a key such as Ctrl-C reaches both anyway.
  /// Error::error_number: kNotFound or kNotExecutable. `quiet`: its standard output goes to standard error.
  util::Result<Ran> run(std::vector<std::string> command, bool quiet);

  /// Calls `done` several times a second until it is true. The signal that came meanwhile, if one did.
  std::optional<int> wait_until(const std::function<bool()>& done);

 private:
  std::optional<siginfo_t> next_signal();

  sigset_t waiting_{};  // signals
  sigset_t before_{};   // what was blocked already
};

}  // namespace ssdpulse::cli
