// SPDX-License-Identifier: Apache-2.0
// The commands of ssdpulse(1). One file each: its options, and a call of the one function elsewhere that runs it.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "daemon/base/result.h"

namespace ssdpulse::cli {

using util::ExitCode;

/// Adds one command, with its options, to `app`. The command runs when it is parsed, and sets `exit_code`, which must
/// outlive `app`.
using AddCommand = void(CLI::App& app, ExitCode& exit_code);

AddCommand add_run;
AddCommand add_check_config;
AddCommand add_print_config;
AddCommand add_devices;
AddCommand add_metrics;
AddCommand add_simulate;
AddCommand add_why;
AddCommand add_top;
AddCommand add_what_if;
AddCommand add_history;
AddCommand add_mark;
AddCommand add_doctor;
AddCommand add_audit;
AddCommand add_report;
AddCommand add_mcp;
AddCommand add_nvme_reader;

/// How long a command with these options may take, far more than it needs; nothing for the services, the screen, and
/// what takes as long as its input or the command that it runs.
std::optional<std::chrono::minutes> time_limit_of(const std::string& command, const std::vector<std::string>& options);

// nearest(): the word to suggest for a mistyped word of the command line, as in "Did you mean ...?".

/// The word that differs from `wrong` by the fewest single-letter changes: at most a third of its letters, and no more
/// than three. Nothing if there is none; the first if there are several.
std::optional<std::string> nearest(const std::string& wrong, const std::vector<std::string>& words);

}  // namespace ssdpulse::cli
