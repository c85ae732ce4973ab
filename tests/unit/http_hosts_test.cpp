// SPDX-License-Identifier: Apache-2.0
// With which Host headers may the page be requested?
#include <gtest/gtest.h>

#include "exporters/http/http_security.h"

namespace ssdpulse::http {
namespace {

TEST(http_hosts, takes_addresses_localhost_and_what_is_configured) {
  const std::vector<std::string> names{"db1.example.org"};
  for (const char* host : {"127.0.0.1", "127.0.0.1:10936", "10.1.2.3:80", "[::1]", "[::1]:10936", "[fe80::1]:1",
                           "localhost", "LOCALHOST:10936", "localhost.", "a.localhost:1", "db1.example.org",
                           "DB1.example.org:10936", "db1.example.org.", ""}) {
    EXPECT_TRUE(is_own_host(host, names)) << host;
  }
  for (const char* host :
       {"evil.example", "evil.example:10936", "127.0.0.1.evil.example", "localhost.evil.example", "evillocalhost",
        ".localhost", "db1.example.org.evil.example", "xdb1.example.org", "[::1", "[::1]x", "[evil]", "127.0.0.1:x",
        "localhost:123456", "1.2.3", "0x7f.1", "[::1]:80:80", ":80", "localhost..", "evil.example:80@127.0.0.1"}) {
    EXPECT_FALSE(is_own_host(host, names)) << host;
  }
}

}  // namespace
}  // namespace ssdpulse::http
