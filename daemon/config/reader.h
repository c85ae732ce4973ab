// SPDX-License-Identifier: Apache-2.0
// ConfigurationReader: reloads the configuration on a thread that lives only for that. People look at the daemon when a
// disk hangs, and a file on that disk must not hold up sampling.
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

/// Returns the effective configuration, from file and command line, at the start and again on SIGHUP; or every problem
/// with it, one line each. May outlive its caller: captures only values.
using Configure = std::function<Configured()>;

class ConfigurationReader {
 public:
  explicit ConfigurationReader(Configure configure) : configure_(std::move(configure)) {}

  /// Begins a reading or, while one is under way, schedules another.
  void ask();

  /// What was read, once for each reading. Never waits.
  std::optional<Configured> answer();

 private:
  void begin();

  Configure configure_;
  std::future<Configured> reading_;  // invalid: not requested
  bool asked_again_ = false;
};

}  // namespace ssdpulse::config
