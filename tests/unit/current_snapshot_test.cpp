// SPDX-License-Identifier: Apache-2.0
// Until when do the newest snapshot's figures count as fresh?
#include "daemon/serve/current_snapshot.h"

#include <gtest/gtest.h>

namespace ssdpulse::serve {
namespace {

using namespace std::chrono_literals;

TEST(CurrentSnapshot, IsFreshForAWhile) {
  CurrentSnapshot current;
  const auto begin = CurrentSnapshot::Clock::now();
  EXPECT_FALSE(current.fresh(begin));
  current.publish(std::make_shared<model::Snapshot>(), begin);
  EXPECT_TRUE(current.fresh(begin));
  EXPECT_TRUE(current.fresh(begin + 29s));
  EXPECT_FALSE(current.fresh(begin + 31s));
  EXPECT_NE(current.get(), nullptr);  // a stale one can still be read
  current.publish(std::make_shared<model::Snapshot>(), begin + 40s);
  EXPECT_TRUE(current.fresh(begin + 41s));
  EXPECT_TRUE(current.fresh(begin + 39s));  // a reader that had read the clock earlier
}

}  // namespace
}  // namespace ssdpulse::serve
