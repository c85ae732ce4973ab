// SPDX-License-Identifier: Apache-2.0
#include <sys/prctl.h>
#include <sys/types.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <iostream>
#include <memory>

#include "daemon/base/log.h"
#include "daemon/cli/command_options.h"
#include "daemon/cli/commands.h"
#include "daemon/runtime/daemon.h"

namespace ssdpulse::cli {
namespace {

struct RunOptions {
  ConfigurationOptions configuration;
  std::string log_level = "info";
  std::string log_format = "text";
  pid_t ends_with = 0;  // the command that this daemon is private to; 0: none
};

/// Makes this process end with the command that started it, however that ends. False: the command has already ended.
bool belong_to(pid_t command) {
  ::prctl(PR_SET_NAME, "ssdpulse", 0, 0, 0);  // exec named us after the link that it followed
  ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  // The socket is passed as systemd does it. That protocol needs our process ID, which nobody knew before we started.
  ::setenv("LISTEN_PID", std::to_string(::getpid()).c_str(), 1);  // NOLINT(concurrency-mt-unsafe): no other thread yet
  return ::getppid() == command;
}

ExitCode run(const RunOptions& options) {
  if (options.ends_with != 0 && !belong_to(options.ends_with)) {
    return ExitCode::success;
  }
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
  const auto configured = configure_or_complain(options.configuration, SlowFile::awaited);
  if (!configured) {
    return ExitCode::usage;
  }
  return runtime::run([configuration = options.configuration] {
    log::info("configuration", log::quoted("from", describe_origin(configuration)));
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
  command->add_flag(
      "--web.allow-less-protection", options->configuration.allow_less_protection,
      "Start although the last run protected its pages by TLS, users or client certificates and this one does not");
  command->add_option("--log.level", options->log_level, "debug, info, warning or error (default info)");
  command->add_option("--log.format", options->log_format, "text, or json: one object per line (default text)");
  command->add_option("--ends-with", options->ends_with)->group("");  // hidden: used by `top` if no daemon answers
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace ssdpulse::cli
