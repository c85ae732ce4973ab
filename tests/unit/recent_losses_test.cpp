// SPDX-License-Identifier: Apache-2.0
// Does the log report losses while they happen, and nothing else?
#include <gtest/gtest.h>

#include <optional>

#include "daemon/block/device_events.h"

namespace ssdpulse::block {
namespace {

using std::chrono::seconds;

/// A device that does this much each second.
class Device {
 public:
  /// The last report within this many seconds.
  std::optional<LostShare> run(int ticks, std::uint64_t ios, std::uint64_t missed, std::uint64_t strays = 0) {
    std::optional<LostShare> last;
    for (int tick = 0; tick < ticks; ++tick) {
      at_ += seconds(1);
      io_.operations[index(model::Operation::read)].completions += ios;
      io_.losses[index(model::Loss::completion_missed)] += missed;
      io_.losses[index(model::Loss::stray)] += strays;
      io_.losses[index(model::Loss::clock)] += ios;  // loses no I/O
      if (const auto share = losses_.observe(io_, at_)) {
        last = share;
      }
    }
    return last;
  }

 private:
  RecentLosses losses_;
  RecentLosses::Time at_{};
  model::DeviceIo io_;
};

TEST(RecentLosses, AMinuteOfLosses) {
  Device device;
  EXPECT_FALSE(device.run(60, 1000, 9, 2)) << "the minute is not over";
  const auto share = device.run(1, 1000, 9, 2);
  ASSERT_TRUE(share);
  EXPECT_EQ(share->lost[0], 540U);
  EXPECT_EQ(share->lost[1], 120U);
  EXPECT_EQ(share->lost[2], 0U);
  EXPECT_EQ(share->ios, 60'660U);
  EXPECT_EQ(share->duration, seconds(60));
}

TEST(RecentLosses, OnlyWhatIsRecent) {
  Device device;
  ASSERT_TRUE(device.run(61, 1000, 100));
  EXPECT_FALSE(device.run(60, 1000, 0)) << "of an hour it is still one in a hundred";
  ASSERT_TRUE(device.run(60, 1000, 2));
}

TEST(RecentLosses, AFewAreNothing) {
  Device device;
  EXPECT_FALSE(device.run(301, 1000, 1)) << "one in a thousand and one";
  Device idle;
  (void)idle.run(1, 0, 0);
  (void)idle.run(1, 9, 9);
  EXPECT_FALSE(idle.run(59, 0, 0)) << "a handful";
}

}  // namespace
}  // namespace ssdpulse::block
