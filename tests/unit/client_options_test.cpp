// SPDX-License-Identifier: Apache-2.0
// Is a named configuration that cannot be used an error of the command line, instead of being replaced by the defaults?
// And is a busy daemon recognised as running?
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "daemon/base/file_descriptor.h"
#include "daemon/cli/command_options.h"
#include "daemon/cli/commands.h"
#include "tests/fixtures/temporary_tree.h"

namespace ssdpulse::cli {
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

TEST(ClientOptions, WhatRunsACommandOrMeasuresMayTakeLonger) {
  EXPECT_EQ(time_limit_of("why", {}), std::chrono::minutes(1));
  EXPECT_EQ(time_limit_of("report", {"--change", "last"}), std::chrono::minutes(10));
  EXPECT_EQ(time_limit_of("report", {"--width", "1m", "--", "sleep", "3600"}), std::nullopt);
  EXPECT_EQ(time_limit_of("devices", {}), std::chrono::minutes(1));
  EXPECT_GT(time_limit_of("devices", {"--ladder", "3600"}), std::chrono::minutes(60));
  EXPECT_GT(time_limit_of("devices", {"--ladder=3600"}), std::chrono::minutes(60));
}

TEST(Report, SaysThatNoHistoryIsKept) {
  const tests::TemporaryTree tree;
  const std::string file = std::string(tree.path()) + "/ssdpulse.yaml";
  std::ofstream(file) << "history:\n  directory: ''\n";
  EXPECT_EQ(error_of("report --last 1h --config " + file), "no history is kept: history.directory is empty");
}

TEST(Client, ADaemonThatIsTooBusyToAcceptIsThere) {
  const tests::TemporaryTree tree;
  const std::string path = tree.path("web.socket");
  EXPECT_FALSE(somebody_listens_on(path)) << "there is none";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  ASSERT_LT(path.size(), sizeof(address.sun_path));
  std::memcpy(address.sun_path, path.c_str(), path.size());
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  util::UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::bind(listener.get(), generic, sizeof(address)), 0);
  EXPECT_FALSE(somebody_listens_on(path)) << "nobody listens yet";
  ASSERT_EQ(::listen(listener.get(), 0), 0);
  std::vector<util::UniqueFd> waiting;
  int error = 0;
  while (error == 0 && waiting.size() < 100) {
    waiting.emplace_back(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    error = ::connect(waiting.back().get(), generic, sizeof(address)) == 0 ? 0 : errno;
  }
  ASSERT_EQ(error, EAGAIN) << "more connections than may wait";
  EXPECT_TRUE(somebody_listens_on(path));
  listener.reset();
  EXPECT_FALSE(somebody_listens_on(path)) << "what a daemon left behind";
}

TEST(Client, NobodyListensAtWhatIsNoPath) {
  sockaddr_un address{};  // what an empty path would be copied to: a name that any user may take
  address.sun_family = AF_UNIX;
  const util::UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_TRUE(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 ||
              errno == EADDRINUSE);  // by another run of this test
  ::listen(listener.get(), 1);
  EXPECT_FALSE(somebody_listens_on(""));
  EXPECT_FALSE(somebody_listens_on("/" + std::string(sizeof(address.sun_path), 'x'))) << "longer than an address";
}

}  // namespace
}  // namespace ssdpulse::cli
