// SPDX-License-Identifier: Apache-2.0
// Does the log report the worst spikes, at a limited rate, and long ones while they last?
#include <gtest/gtest.h>

#include "daemon/base/number_text.h"
#include "daemon/spikes/spike_stage.h"

namespace ssdpulse::spikes {
namespace {

using namespace std::chrono_literals;

SpikeLog::Time at(int second) { return SpikeLog::Time(std::chrono::hours(1)) + std::chrono::seconds(second); }

model::LatencySpike spike_of(double excess, std::chrono::seconds duration = 1s) {
  model::LatencySpike spike;
  spike.device = "nvme0n1";
  spike.excess_seconds = excess;
  spike.duration = duration;
  return spike;
}

TEST(SpikeLog, OfThoseThatComeTogetherTheWorstHasALine) {
  SpikeLog log;
  auto lines = log.observe(at(0), {spike_of(1)}, {});
  ASSERT_EQ(lines.size(), 1U) << "the first at once";
  EXPECT_EQ(lines[0].suppressed, 0U);
  EXPECT_TRUE(log.observe(at(3), {spike_of(2)}, {}).empty());
  EXPECT_TRUE(log.observe(at(5), {spike_of(50)}, {}).empty());
  EXPECT_TRUE(log.observe(at(7), {spike_of(3)}, {}).empty());
  lines = log.observe(at(10), {}, {});
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0].spike.excess_seconds, 50);
  EXPECT_EQ(lines[0].suppressed, 2U);
  EXPECT_TRUE(log.observe(at(30), {}, {}).empty());
}

TEST(SpikeLog, OperationsAndDevicesAreApart) {
  SpikeLog log;
  auto commit = spike_of(1);
  commit.operation = model::Operation::commit;
  auto other = spike_of(1);
  other.device = "sda";
  EXPECT_EQ(log.observe(at(0), {spike_of(1), commit, other}, {}).size(), 3U);
}

TEST(SpikeLog, ALongSpikeIsLoggedWhileItLasts) {
  SpikeLog log;
  std::vector<int> told;
  for (int second = 1; second <= 170; ++second) {
    for (const auto& line : log.observe(at(second), {}, {spike_of(0, std::chrono::seconds(second))})) {
      EXPECT_TRUE(line.goes_on);
      told.push_back(second);
    }
  }
  EXPECT_EQ(told, (std::vector{10, 70, 130}));
  const auto lines = log.observe(at(171), {spike_of(170, 170s)}, {});
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_FALSE(lines[0].goes_on);
  EXPECT_TRUE(log.observe(at(200), {}, {spike_of(0, 5s)}).empty()) << "another one";
  EXPECT_EQ(log.observe(at(205), {}, {spike_of(0, 10s)}).size(), 1U);
}

TEST(UtcText, HasMilliseconds) {
  EXPECT_EQ(util::utc_text(std::chrono::system_clock::time_point(1795329422118ms)), "2026-11-22T06:37:02.118Z");
  EXPECT_EQ(util::utc_text(std::chrono::system_clock::time_point(-1ms)), "1969-12-31T23:59:59.999Z");
}

}  // namespace
}  // namespace ssdpulse::spikes
