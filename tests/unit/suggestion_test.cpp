// SPDX-License-Identifier: Apache-2.0
// Is the intended word found, and none suggested if nothing is close?
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "daemon/cli/commands.h"

namespace ssdpulse::cli {
namespace {

const std::vector<std::string> kWords{"run", "check-config", "devices", "top", "why", "--log.level"};

TEST(Suggestion, TheNearestWord) {
  EXPECT_EQ(nearest("device", kWords), "devices");
  EXPECT_EQ(nearest("chek-cnfig", kWords), "check-config");
  EXPECT_EQ(nearest("--log-level", kWords), "--log.level");
  EXPECT_EQ(nearest("tap", kWords), "top");
}

TEST(Suggestion, NothingIsNear) {
  EXPECT_FALSE(nearest("frobnicate", kWords));
  EXPECT_FALSE(nearest("", kWords));
  EXPECT_FALSE(nearest("ab", kWords)) << "any word of two letters would do";
  EXPECT_FALSE(nearest(std::string(100'000, 'x'), kWords));
}

}  // namespace
}  // namespace ssdpulse::cli
