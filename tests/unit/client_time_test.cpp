// SPDX-License-Identifier: Apache-2.0
// Which time does `ssdpulse why --at` mean?
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "daemon/cli/api_client.h"
#include "daemon/cli/asked_times.h"

namespace ssdpulse::cli {
namespace {

using std::chrono::system_clock;

/// The meaning, in seconds since the epoch, at 2023-11-14 22:13:20 UTC, which is 23:13:20 there; -1: none.
std::time_t meant(const std::string& text) {
  ::setenv("TZ", "CET-1", 1);
  ::tzset();
  const auto time = parse_time(text, system_clock::from_time_t(1'700'000'000));
  return time ? system_clock::to_time_t(*time) : -1;
}

TEST(client_time, is_said_in_many_ways) {
  EXPECT_EQ(meant("23:13:10"), 1'699'999'990);
  EXPECT_EQ(meant("23:13"), 1'699'999'980);
  EXPECT_EQ(meant("22:13:10Z"), 1'699'999'990);
  EXPECT_EQ(meant("23:14"), 1'700'000'040 - 86'400);  // not reached yet today
  EXPECT_EQ(meant("2023-11-14T23:13:10"), 1'699'999'990);
  EXPECT_EQ(meant("2023-11-14 23:13"), 1'699'999'980);
  EXPECT_EQ(meant("2023-11-14T22:13:10Z"), 1'699'999'990);
  EXPECT_EQ(meant("-10m"), 1'699'999'400);
  EXPECT_EQ(meant("@1699999990"), 1'699'999'990);
  for (const char* text : {"", "noon", "3", "25:00", "23:13:10x", "-", "-10", "@", "@x", "@-5", "@99999999999"}) {
    EXPECT_EQ(meant(text), -1) << text;
  }
}

RC_GTEST_PROP(client_time, any_text_is_a_time_or_none, ()) { meant(*rc::gen::string<std::string>()); }

TEST(client_address, is_where_the_daemon_listens) {
  config::Web web = config::Config().web;
  EXPECT_EQ(url_of(web), "http://127.0.0.1:10936");
  web.listen_address = {":9000", "127.0.0.1:1"};
  EXPECT_EQ(url_of(web), "http://127.0.0.1:9000");
  web.listen_address = {"[::]:9000"};
  EXPECT_EQ(url_of(web), "http://[::1]:9000");
  web.listen_address = {"10.0.0.1:9000"};
  web.config_file = "/etc/ssdpulse/web.yaml";
  EXPECT_EQ(url_of(web), "https://10.0.0.1:9000") << "of a file that cannot be read";
  const std::string file = testing::TempDir() + "client_address_web.yaml";
  std::ofstream(file) << "http_server_config:\n  headers:\n    X-Frame-Options: deny\n";
  web.config_file = file;
  EXPECT_EQ(url_of(web), "http://10.0.0.1:9000") << "no TLS in it";
  std::remove(file.c_str());
}

}  // namespace
}  // namespace ssdpulse::cli
