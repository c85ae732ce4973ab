// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <memory>

#include "daemon/cli/commands.h"
#include "daemon/flash/load_simulation.h"

namespace ssdpulse::cli {
namespace {

void add_simulate_options(CLI::App& command, flash::SimulateArguments& arguments) {
  command
      .add_option("--input", arguments.input,
                  "File of lines W,OFFSET,BYTES[,HINT] and D,OFFSET,BYTES; -: standard input")
      ->required();
  command
      .add_option("--size", arguments.size_bytes,
                  "Size of the drive, in bytes or with a unit (1.92TB is 1.92 * 1000^4)")
      ->required()
      ->transform(CLI::Validator(
          [](std::string& text) {
            const auto bytes = flash::size_in_bytes(text);
            text = bytes ? std::to_string(*bytes) : text;
            return bytes ? std::string() : bytes.error().message;
          },
          "SIZE"));
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
  command.add_option("--sample", arguments.sample_pages, "Follow about this many pages (default 65536)")
      ->excludes(full);
  command.add_option("--seed", arguments.seed, "Which pages are followed (default 1)");
  command.add_option("--start", arguments.start, "full or empty (default full, in the order of addresses)");
  command.add_option("--window", arguments.window,
                     "FROM-TO: what counts, in percent of all that is written (default 50-100)");
  command.add_flag("--json", arguments.json, "Print JSON");
}

}  // namespace

void add_simulate(CLI::App& app, ExitCode& exit_code) {
  CLI::App* command =
      app.add_subcommand("simulate", "Model the write amplification of a recorded load, for several kinds of drives");
  const auto arguments = std::make_shared<flash::SimulateArguments>();
  add_simulate_options(*command, *arguments);
  command->callback([arguments, &exit_code] { exit_code = flash::simulate(*arguments, std::cout, std::cerr); });
}

}  // namespace ssdpulse::cli
