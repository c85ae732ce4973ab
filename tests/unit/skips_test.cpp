// SPDX-License-Identifier: Apache-2.0
// Does a skip fail its test unless it is listed in tests/skips.txt?
#include "tests/unit/skips.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace ssdpulse::test {
namespace {

TEST(Skips, DISABLED_NotNamed) { GTEST_SKIP() << "as if something were not installed"; }

TEST(Skips, OneThatIsNotNamedFails) {
  const std::string run = "exec /proc/" + std::to_string(::getpid()) +
                          "/exe --gtest_also_run_disabled_tests --gtest_filter=Skips.DISABLED_NotNamed >/dev/null";
  const int status = std::system(run.c_str());
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1) << status;
}

TEST(Skips, AreNamedWithBinaryTestAndReason) {
  const std::string text =
      "# a comment\n"
      "system.test_grafana no Debian suite has Grafana\n"
      "unit.a_test Suite.Named somebody said why\n"
      "unit.a_test Suite.WithoutReason\n";
  const auto named = [&](const std::string& binary, const std::string& test) {
    std::istringstream list(text);
    return may_skip(list, binary, test);
  };
  EXPECT_TRUE(named("a_test", "Suite.Named"));
  EXPECT_FALSE(named("a_test", "Suite.WithoutReason"));
  EXPECT_FALSE(named("a_test", "Suite.Name"));
  EXPECT_FALSE(named("another_test", "Suite.Named"));
}

TEST(Skips, EveryNameIsThatOfATest) {
  std::ifstream list(kSkips);
  ASSERT_TRUE(list);
  for (std::string name, line; list >> name && std::getline(list, line);) {
    if (name.rfind("unit.", 0) != 0) {
      continue;
    }
    std::istringstream words(line);
    std::string suite;
    std::string test;
    std::getline(words >> std::ws, suite, '.');
    words >> test;
    std::ostringstream source;
    source << std::ifstream(SSDPULSE_SOURCE_DIR "/tests/unit/" + name.substr(5) + ".cpp").rdbuf();
    EXPECT_NE(source.str().find("(" + suite + ", " + test + ") {"), std::string::npos) << name << line;
  }
}

}  // namespace
}  // namespace ssdpulse::test
