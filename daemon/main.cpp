// SPDX-License-Identifier: Apache-2.0
// The command line: argv -> configuration -> the one function that does it -> exit status.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/client/commands.h"
#include "daemon/config/device_pattern.h"
#include "daemon/config/listen_address.h"
#include "daemon/config/parse.h"
#include "daemon/model/version.h"
#include "daemon/nvme_reader/process.h"
#include "daemon/runtime/daemon.h"
#include "daemon/runtime/device_report.h"
#include "daemon/simulation/simulate.h"
#include "daemon/util/log.h"
#include "daemon/web/security.h"
#include "exporters/prometheus/metric_list.h"

namespace {

using namespace ssdpulse;
using util::ExitCode;

constexpr int kNvmeReaderSocket = 3;  // where ReaderClient puts it, and service managers theirs

struct Arguments {
  std::string config_file;
  std::vector<std::string> listen_address;
  std::string web_config_file;
  bool systemd_socket = false;
  std::vector<std::string> include;
  std::vector<std::string> exclude;
  std::optional<std::string> history_directory;
  std::optional<std::string> reader_socket;
  std::string log_level = "info";
  client::Where where;
  client::TopOptions top;
  std::string at;
  bool json = false;
  bool as_manual = false;
};

/// File, then command line.
tl::expected<config::Config, std::vector<std::string>> configure(const Arguments& arguments) {
  config::Config result;
  std::vector<std::string> problems;
  if (!arguments.config_file.empty()) {
    auto loaded = config::load(arguments.config_file);
    if (loaded) {
      result = std::move(*loaded);
    } else {
      for (const config::Problem& problem : loaded.error()) {
        problems.push_back(to_string(problem));
      }
    }
  }
  for (const std::string& address : arguments.listen_address) {
    if (auto parsed = config::parse_listen_address(address); !parsed) {
      problems.push_back("--web.listen-address: " + parsed.error().message);
    }
  }
  const auto want_patterns = [&](const char* option, const std::vector<std::string>& patterns) {
    for (const std::string& pattern : patterns) {
      if (const auto flaw = config::flaw_of_device_pattern(pattern)) {
        problems.push_back(std::string(option) + ": '" + pattern + "' " + *flaw +
                           "; expected a pattern, as in 'nvme*'");
      }
    }
  };
  want_patterns("--devices.include", arguments.include);
  want_patterns("--devices.exclude", arguments.exclude);
  const auto want_absolute = [&](const char* option, const std::optional<std::string>& path) {
    if (path && !path->empty() && path->front() != '/') {
      problems.push_back(std::string(option) + ": '" + *path + "' is not absolute; expected an absolute path, or ''");
    }
  };
  want_absolute("--history.directory", arguments.history_directory);
  want_absolute("--nvme.reader-socket", arguments.reader_socket);
  if (!problems.empty()) {
    return tl::make_unexpected(problems);
  }
  const auto override_with = [](const std::vector<std::string>& given, std::vector<std::string>& value) {
    if (!given.empty()) {
      value = given;
    }
  };
  result.history.directory = arguments.history_directory.value_or(result.history.directory);
  result.nvme.reader_socket = arguments.reader_socket.value_or(result.nvme.reader_socket);
  override_with(arguments.listen_address, result.web.listen_address);
  if (!arguments.web_config_file.empty()) {
    std::error_code error;
    const auto absolute = std::filesystem::absolute(arguments.web_config_file, error);
    if (error) {  // the working directory is gone
      return tl::make_unexpected(
          std::vector<std::string>{"--web.config.file: cannot make it absolute: " + error.message()});
    }
    result.web.config_file = absolute.string();
  }
  result.web.systemd_socket = arguments.systemd_socket;
  override_with(arguments.include, result.devices.include);
  override_with(arguments.exclude, result.devices.exclude);
  return result;
}

/// For commands that end at once: the configuration, or its problems on stderr.
std::optional<config::Config> configure_or_complain(const Arguments& arguments) {
  auto configured = configure(arguments);
  if (configured) {
    return *configured;
  }
  for (const std::string& problem : configured.error()) {
    std::cerr << problem << '\n';
  }
  return std::nullopt;
}

/// The file that web.config_file names, and the certificates; or their problems on stderr.
bool web_security_is_good(const config::Config& configured) {
  if (configured.web.config_file.empty()) {
    return true;
  }
  const auto loaded = web::load_web_security(configured.web.config_file);
  if (!loaded.outcome) {
    for (const std::string& problem : loaded.outcome.error()) {
      std::cerr << problem << '\n';
    }
  }
  return loaded.outcome.has_value();
}

void add_configuration_options(CLI::App& command, Arguments& arguments) {
  command.add_option("--config,-c", arguments.config_file, "Configuration file (YAML); without it, built-in defaults");
  command.add_option("--web.listen-address", arguments.listen_address,
                     "Where to serve metrics: HOST:PORT, [IPV6]:PORT or :PORT; repeatable (default 127.0.0.1:10936)");
  command.add_option("--web.config.file", arguments.web_config_file,
                     "File with TLS and basic authentication, in the format that Prometheus exporters share");
  command.add_option("--history.directory", arguments.history_directory,
                     "Absolute path of the directory for the history; empty: none (default /var/lib/ssdpulse)");
  command.add_option(
      "--nvme.reader-socket", arguments.reader_socket,
      "Absolute path of the socket of a log reader that runs as a service; empty: the daemon starts its own");
  command.add_option("--devices.include", arguments.include, "Shell pattern of block devices to measure; repeatable");
  command.add_option("--devices.exclude", arguments.exclude, "Shell pattern of block devices to leave out; repeatable");
}

ExitCode run(const Arguments& arguments) {
  if (auto logging = log::set_up(arguments.log_level); !logging) {
    std::cerr << "--log.level: " << logging.error().message << '\n';
    return ExitCode::usage;
  }
  // Before there is a log of a running daemon, problems go to the terminal as they are.
  const auto configured = configure_or_complain(arguments);
  if (!configured) {
    return ExitCode::usage;
  }
  return runtime::run([arguments] { return configure(arguments); });
}

ExitCode print_config(const Arguments& arguments) {
  const auto configured = configure_or_complain(arguments);
  if (!configured) {
    return ExitCode::usage;
  }
  std::cout << config::print(*configured);
  return ExitCode::success;
}

ExitCode check_config(const Arguments& arguments) {
  const auto configured = configure_or_complain(arguments);
  if (!configured || !web_security_is_good(*configured)) {
    return ExitCode::usage;
  }
  std::cout << arguments.config_file << ": ok\n";
  return ExitCode::success;
}

ExitCode list_devices(const Arguments& arguments) {
  const auto configured = configure_or_complain(arguments);
  return configured ? runtime::report_devices(*configured, std::cout) : ExitCode::usage;
}

ExitCode list_metrics(const Arguments& arguments) {
  std::cout << (arguments.json        ? exposition::metric_list_json()
                : arguments.as_manual ? exposition::metric_list_manual()
                                      : exposition::metric_list_text());
  return std::cout.flush() ? ExitCode::success : ExitCode::failure;
}

void add_simulate_options(CLI::App& command, simulation::SimulateArguments& arguments) {
  command
      .add_option("--input", arguments.input,
                  "File of lines W,OFFSET,BYTES[,HINT] and D,OFFSET,BYTES; -: standard input")
      ->required();
  command
      .add_option("--size", arguments.size_bytes, "Size of the drive, in bytes or with a unit (960GB is 960 * 1000^3)")
      ->required()
      ->transform(CLI::AsSizeValue(true));
  command.add_option("--page-size", arguments.page_bytes, "Bytes that the drive maps as one (default 4096)");
  command
      .add_option("--op", arguments.overprovisioning,
                  "Over-provisioning in percent, several with commas (default 7,12,28,50)")
      ->delimiter(',');
  command
      .add_option("--policy", arguments.policies,
                  "Some of greedy, greedy_gc_frontier, cost_benefit, fifo (default all but fifo)")
      ->delimiter(',');
  command
      .add_option("--placement", arguments.placements,
                  "What is kept apart, some of none, hints, last_lifetime (default none)")
      ->delimiter(',');
  command.add_option("--discards", arguments.discards, "honoured or ignored (default honoured)");
  auto* full =
      command.add_flag("--full", arguments.full, "Follow every page: exact, slower, 10 bytes of memory a page and run");
  command.add_option("--sample", arguments.sample_pages, "Follow about so many pages (default 65536)")->excludes(full);
  command.add_option("--seed", arguments.seed, "Which pages are followed (default 1)");
  command.add_option("--start", arguments.start, "full or empty (default full, in the order of addresses)");
  command.add_option("--window", arguments.window,
                     "FROM-TO: what counts, in percent of all that is written (default 50-100)");
  command.add_flag("--json", arguments.json, "Print JSON");
}

/// Where the daemon of this configuration answers. Without -c, that of the service, as far as it can be read.
config::Web web_of(const Arguments& arguments) {
  constexpr const char* kServiceFile = "/etc/ssdpulse/ssdpulse.yaml";
  const auto loaded = config::load(arguments.config_file.empty() ? kServiceFile : arguments.config_file);
  return loaded ? loaded->web : config::Web{};
}

ExitCode ask_why(const Arguments& arguments) {
  return client::why(arguments.where, web_of(arguments), arguments.at, arguments.json) ? ExitCode::success
                                                                                       : ExitCode::failure;
}

ExitCode show_top(const Arguments& arguments) {
  client::TopOptions options = arguments.top;
  options.json = arguments.json;
  return client::top(arguments.where, web_of(arguments), options) ? ExitCode::success : ExitCode::failure;
}

void add_client_options(CLI::App& command, Arguments& arguments) {
  command.add_option("--address", arguments.where.address,
                     "Where the daemon answers: HOST:PORT, http(s)://HOST:PORT or unix:PATH (default: as configured)");
  command.add_option("--cacert", arguments.where.ca_file, "File of certificates to trust, for https");
  command.add_option("--config,-c", arguments.config_file, "The daemon's configuration file, for its address");
  command.add_flag("--json", arguments.json, "Print the answer as JSON");
}

int parse_and_run(int argc, char** argv) {
  Arguments arguments;
  ExitCode exit_code = ExitCode::success;
  CLI::App app{"ssdpulse: how slow is my SSD right now, why, and how fast am I wearing it out?"};
  app.set_version_flag("--version", std::string("ssdpulse ") + model::kVersion + " (" + model::kRevision + ")");
  app.require_subcommand(1);
  app.footer(
      "Exit status: 0 stopped on request; 1 internal failure, or unusable certificate files; 2 wrong command line,\n"
      "configuration or input; 3 not permitted; 4 the kernel lacks a required feature; 5 cannot listen on the "
      "address.");

  CLI::App* run_command = app.add_subcommand("run", "Measure and serve metrics until SIGTERM; SIGHUP reloads");
  add_configuration_options(*run_command, arguments);
  run_command->add_flag("--web.systemd-socket", arguments.systemd_socket,
                        "Serve only on the sockets that systemd passes with FileDescriptorName=web");
  run_command->add_option("--log.level", arguments.log_level, "debug, info, warning or error (default info)");
  run_command->callback([&] { exit_code = run(arguments); });

  CLI::App* check_command = app.add_subcommand("check-config", "Check a configuration file and report every problem");
  check_command->add_option("FILE", arguments.config_file, "Configuration file (YAML)")->required();
  check_command->callback([&] { exit_code = check_config(arguments); });

  CLI::App* print_command = app.add_subcommand("print-config", "Print the effective configuration");
  add_configuration_options(*print_command, arguments);
  print_command->callback([&] { exit_code = print_config(arguments); });

  CLI::App* devices_command = app.add_subcommand("devices", "List block devices and whether they are measured");
  add_configuration_options(*devices_command, arguments);
  devices_command->callback([&] { exit_code = list_devices(arguments); });

  CLI::App* metrics_command = app.add_subcommand("metrics", "List every metric: name, type, unit, labels, meaning");
  CLI::Option* as_json = metrics_command->add_flag("--json", arguments.json, "As JSON");
  metrics_command->add_flag("--man", arguments.as_manual, "As the manual page ssdpulse-metrics(7)")->excludes(as_json);
  metrics_command->callback([&] { exit_code = list_metrics(arguments); });

  simulation::SimulateArguments simulation;
  CLI::App* simulate_command =
      app.add_subcommand("simulate", "Model the write amplification of a recorded load, for several kinds of drives");
  add_simulate_options(*simulate_command, simulation);
  simulate_command->callback([&] { exit_code = simulation::simulate(simulation, std::cout, std::cerr); });

  CLI::App* why_command = app.add_subcommand("why", "Which drive is slow, since when, why, and what to do next");
  add_client_options(*why_command, arguments);
  why_command->add_option("--at", arguments.at, "Of a time past: 03:00, 2026-11-23T03:00:12, -10m or @SECONDS");
  why_command->callback([&] { exit_code = ask_why(arguments); });

  CLI::App* top_command =
      app.add_subcommand("top", "Show the drives in the terminal, the one that needs somebody first");
  add_client_options(*top_command, arguments);
  top_command->add_flag("--once", arguments.top.once, "Print one screen as text and end");
  top_command->callback([&] { exit_code = show_top(arguments); });

  // Started by the daemon or a service manager, not by people: not in --help.
  CLI::App* reader_command = app.add_subcommand("nvme-reader", "Read NVMe log pages for the daemon")->group("");
  reader_command->callback([&] { exit_code = static_cast<ExitCode>(nvme_reader::run_nvme_reader(kNvmeReaderSocket)); });

  try {
    // The parser would only say that a command is missing.
    const auto is_first = [argv](const CLI::App* command) { return command->check_name(argv[1]); };
    if (argc > 1 && argv[1][0] != '-' && std::as_const(app).get_subcommands(is_first).empty()) {
      throw CLI::ExtrasError({argv[1]});
    }
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(ExitCode::usage);
  }
  return static_cast<int>(exit_code);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return parse_and_run(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "ssdpulse: " << error.what() << '\n';
    return static_cast<int>(ExitCode::failure);
  }
}
