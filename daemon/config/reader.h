// SPDX-License-Identifier: Apache-2.0
// Who reads the configuration anew while the daemon measures? A thread that lives as long as that takes: a disk that
// hangs is when people look at the daemon, and a file on it must hold up no sample.
#pragma once

#include <functional>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include "daemon/config/config.h"
#include "daemon/util/result.h"

namespace ssdpulse::config {

using Configured = tl::expected<Config, std::vector<std::string>>;

/// Makes the effective configuration, from file and command line: at the start, and again on SIGHUP.
/// Or every problem with it, one line each. May outlive its caller: captures values alone.
using Configure = std::function<Configured()>;

class ConfigurationReader {
 public:
  explicit ConfigurationReader(Configure configure) : configure_(std::move(configure)) {}

  /// Begins to read, or, while that is under way, will read once more.
  void ask();

  /// What was read, once for each reading. Never waits.
  std::optional<Configured> answer();

 private:
  void begin();

  Configure configure_;
  std::future<Configured> reading_;  // invalid: nobody asked
  bool asked_again_ = false;
};

}  // namespace ssdpulse::config
