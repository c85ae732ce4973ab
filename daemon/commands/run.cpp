// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <memory>

#include "daemon/commands/commands.h"
#include "daemon/commands/configuration_options.h"
#include "daemon/runtime/daemon.h"
#include "daemon/util/log.h"

namespace ssdpulse::commands {
namespace {

struct RunOptions {
  ConfigurationOptions configuration;
  std::string log_level = "info";
  std::string log_format = "text";
};

ExitCode run(const RunOptions& options) {
  const auto format = log::format_by_name(options.log_format);
  if (!format) {
    std::cerr << "--log.format: unknown format \"" << options.log_format << "\": expected text or json\n";
    return ExitCode::usage;
  }
  if (auto logging = log::set_up(options.log_level, log::InJournal::fields, *format); !logging) {
    std::cerr << "--log.level: " << logging.error().message << '\n';
    return ExitCode::usage;
  }
  // Before there is a log of a running daemon, problems go to the terminal as they are.
  const auto configured = configure_or_complain(options.configuration);
  if (!configured) {
    return ExitCode::usage;
  }
  return runtime::run([configuration = options.configuration] {
    log::info("configuration from=\"{}\"", describe_origin(configuration));
    return configure(configuration);
  });
}

}  // namespace

void add_run(CLI::App& app, ExitCode& exit_code) {
  CLI::App* command = app.add_subcommand("run", "Measure and serve metrics until SIGTERM; SIGHUP reloads");
  const auto options = std::make_shared<RunOptions>();
  add_configuration_options(*command, options->configuration);
  command->add_flag("--web.systemd-socket", options->configuration.systemd_socket,
                    "Serve only on the sockets that systemd passes with FileDescriptorName=web");
  command->add_option("--log.level", options->log_level, "debug, info, warning or error (default info)");
  command->add_option("--log.format", options->log_format, "text, or json: one object per line (default text)");
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace ssdpulse::commands
