// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sys/random.h>

#include <array>
#include <cstdint>
#include <iostream>
#include <memory>

#include "daemon/cli/command_options.h"
#include "daemon/cli/command_output.h"
#include "daemon/cli/commands.h"
#include "exporters/page/history_json.h"

namespace ssdpulse::cli {
namespace {

struct MarkOptions {
  ClientOptions client;
  std::string text;
  std::string id;  // sent again with it, the mark is not made twice; empty: a random one
};

/// Makes the daemon record that something was done now; `success` once that is on the disk.
ExitCode mark(const MarkOptions& options) {
  const config::Config config = config_of(options.client);
  if (!page::is_printable(options.text)) {
    std::cerr << "TEXT: expected 1 to 128 characters of UTF-8, without control characters\n";
    return ExitCode::usage;
  }
  std::string id = options.id;
  std::array<std::uint64_t, 2> random{};
  if (id.empty() && ::getrandom(random.data(), sizeof random, 0) == sizeof random) {
    id = fmt::format("{:016x}{:016x}", random[0], random[1]);
  }
  auto api = Api::open(options.client.where, config.web);
  if (!api) {
    return fail(api.error());
  }
  if (const auto answer = api->post("marks?text=" + escaped(options.text) + "&id=" + escaped(id)); !answer) {
    std::cerr << answer.error().message << "\nto try again without making a second mark: --id " << id << '\n';
    return ExitCode::failure;
  }
  return ExitCode::success;
}

}  // namespace

void add_mark(CLI::App& app, ExitCode& exit_code) {
  CLI::App* command = app.add_subcommand("mark", "Mark in the history that something was changed now");
  const auto options = std::make_shared<MarkOptions>();
  command->add_option("TEXT", options->text, "What was done, such as 'deployed 4.2'; 128 characters at most")
      ->required();
  command->add_option("--id", options->id,
                      "Sent again with the same ID, it makes no second mark; letters, digits, "
                      "hyphens, 64 at most (default: random)");
  add_client_options(*command, options->client);
  command->callback([options, &exit_code] { exit_code = mark(*options); });
}

}  // namespace ssdpulse::cli
