// SPDX-License-Identifier: Apache-2.0
// The command line: runs the command that it names.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/base/child_process.h"
#include "daemon/cli/commands.h"
#include "daemon/model/version.h"

namespace {

using namespace ssdpulse;
using util::ExitCode;

constexpr cli::AddCommand* kCommands[] = {
    // in the order of --help
    cli::add_run,     cli::add_check_config, cli::add_print_config, cli::add_devices,
    cli::add_metrics, cli::add_simulate,     cli::add_why,          cli::add_top,
    cli::add_what_if, cli::add_history,      cli::add_mark,         cli::add_doctor,
    cli::add_audit,   cli::add_report,       cli::add_mcp,          cli::add_nvme_reader,
};

/// The nearest name of a command, or of an option of the command that was given.
std::optional<std::string> suggestion(const CLI::App& app, const std::string& wrong) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (wrong[0] != '-') {
      names.push_back(command->get_name());
      continue;
    }
    for (const CLI::Option* option : command->parsed() ? command->get_options() : std::vector<const CLI::Option*>{}) {
      for (const std::string& name : option->get_lnames()) {
        names.push_back("--" + name);
      }
    }
  }
  return cli::nearest(wrong.substr(0, wrong.find('=')), names);
}

int parse_and_run(int argc, char** argv) {
  ExitCode exit_code = ExitCode::success;
  CLI::App app{"ssdpulse: how slow is my SSD right now, why, and how fast am I wearing it out?"};
  app.set_version_flag("--version", std::string("ssdpulse ") + model::kVersion + " (" + model::kRevision + ")");
  app.require_subcommand(1);
  app.footer(
      "Exit status: 0 stopped on request; 1 internal failure, or unusable certificate files; 2 wrong command line,\n"
      "configuration or input; 3 not permitted; 4 the kernel lacks a required feature; 5 cannot listen on the "
      "address;\n6 what was asked for was not measured, or is not known yet; 7 too few files may be open.");
  for (cli::AddCommand* const add : kCommands) {
    add(app, exit_code);
  }
  const bool names_command = argc > 1 && argv[1][0] != '-';
  const std::string command = names_command ? argv[1] : "";
  std::optional<util::TimeLimit> limit;
  if (const auto minutes = cli::time_limit_of(command, {argv + std::min(argc, 2), argv + argc});
      names_command && minutes) {
    limit.emplace(command, *minutes);
  }
  try {
    // The parser would only report that a command is missing.
    const auto is_given = [&](const CLI::App* known) { return known->check_name(command); };
    if (names_command && std::as_const(app).get_subcommands(is_given).empty()) {
      throw CLI::ExtrasError({command});
    }
    app.parse(argc, argv);
  } catch (const CLI::ExtrasError& error) {
    app.exit(error);
    const auto unknown = app.remaining(true);  // empty if the parser has not begun
    if (const auto name = suggestion(app, unknown.empty() ? argv[1] : unknown.front())) {
      std::cerr << "Did you mean " << *name << "?\n";
    }
    return static_cast<int>(ExitCode::usage);
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
