// SPDX-License-Identifier: Apache-2.0
// Is a configuration that was named and cannot be used an error of the command line, not the defaults?
#include "daemon/commands/client_options.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "daemon/commands/commands.h"
#include "tests/fixtures/temporary_tree.h"

namespace ssdpulse::commands {
namespace {

std::string error_of(const std::string& command_line) {
  CLI::App app;
  ExitCode exit_code = ExitCode::success;
  add_report(app, exit_code);
  try {
    app.parse(command_line);
  } catch (const CLI::ParseError& error) {
    return error.what();
  }
  return "";
}

TEST(ClientOptions, RefuseAConfigurationThatDoesNotLoad) {
  const tests::TemporaryTree tree;
  const std::string file = std::string(tree.path()) + "/ssdpulse.yaml";
  EXPECT_THROW(config_in(file), CLI::ParseError) << "there is none";
  std::ofstream(file) << "history:\n  directory: /tmp/kept\n";
  EXPECT_EQ(config_in(file).history.directory, "/tmp/kept");
  std::ofstream(file) << "history:\n  directry: /tmp/kept\nwob: 1\n";
  const std::string error = error_of("report --last 1h --config " + file);
  EXPECT_NE(error.find("directry"), std::string::npos) << error;
  EXPECT_NE(error.find("wob"), std::string::npos) << error;
}

TEST(Report, SaysThatNoHistoryIsKept) {
  const tests::TemporaryTree tree;
  const std::string file = std::string(tree.path()) + "/ssdpulse.yaml";
  std::ofstream(file) << "history:\n  directory: ''\n";
  EXPECT_EQ(error_of("report --last 1h --config " + file), "no history is kept: history.directory is empty");
}

}  // namespace
}  // namespace ssdpulse::commands
