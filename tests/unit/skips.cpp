// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/skips.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <fstream>
#include <sstream>

namespace ssdpulse::test {
namespace {

class SkipsAreNamed : public testing::EmptyTestEventListener {
  void OnTestEnd(const testing::TestInfo& info) override {
    if (GTEST_FLAG_GET(fail_fast) && testing::UnitTest::GetInstance()->Failed()) {
      return;  // GoogleTest itself skips the rest
    }
    std::ifstream list(kSkips);
    const std::string test = std::string(info.test_suite_name()) + '.' + info.name();
    if (info.result()->Skipped() && !may_skip(list, ::program_invocation_short_name, test)) {
      ADD_FAILURE() << "skipped, and not in tests/skips.txt: unit." << ::program_invocation_short_name << ' ' << test;
    }
  }
};

// The binaries share GoogleTest's main().
[[maybe_unused]] const bool kListens = [] {
  testing::UnitTest::GetInstance()->listeners().Append(new SkipsAreNamed);  // takes ownership
  return true;
}();

}  // namespace

bool may_skip(std::istream& list, const std::string& binary, const std::string& test) {
  for (std::string line; std::getline(list, line);) {
    std::istringstream words(line);
    std::string first;
    std::string second;
    std::string reason;
    if (words >> first >> second >> reason && first == "unit." + binary && second == test) {
      return true;
    }
  }
  return false;
}

}  // namespace ssdpulse::test
