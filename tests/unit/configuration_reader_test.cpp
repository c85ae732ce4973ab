// SPDX-License-Identifier: Apache-2.0
// Does a slow configuration read delay nobody, and is the newest one reported?
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include "daemon/config/config.h"

namespace ssdpulse::config {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// Each reading waits until it may end, and is identified by its number of days.
struct Disk {
  std::atomic<int> begun{0};
  std::atomic<int> may_end{0};
};

Configure slow_configure(const std::shared_ptr<Disk>& disk) {
  return [disk]() -> Configured {
    const int number = ++disk->begun;
    while (disk->may_end < number) {
      std::this_thread::sleep_for(1ms);
    }
    config::Config config;
    config.history.retention = std::chrono::hours(24 * number);
    return config;
  };
}

std::optional<Configured> answer_within(ConfigurationReader& reader, Clock::duration time) {
  const auto end = Clock::now() + time;
  std::optional<Configured> answer;
  while (!(answer = reader.answer()) && Clock::now() < end) {
    std::this_thread::sleep_for(1ms);
  }
  return answer;
}

TEST(ConfigurationReader, AHangingDiskBlocksNothing) {
  const auto disk = std::make_shared<Disk>();
  const auto begin = Clock::now();
  {
    ConfigurationReader reader(slow_configure(disk));
    EXPECT_FALSE(reader.answer());
    reader.ask();
    EXPECT_FALSE(reader.answer());
  }
  EXPECT_LT(Clock::now() - begin, 4s) << "the disk would hang for ever";
  EXPECT_LE(disk->begun, 1);
  disk->may_end = 1;
}

TEST(ConfigurationReader, ARepeatedRequestGetsTheNewest) {
  const auto disk = std::make_shared<Disk>();
  ConfigurationReader reader(slow_configure(disk));
  reader.ask();
  reader.ask();
  reader.ask();
  disk->may_end = 9;
  const auto answer = answer_within(reader, 10s);
  ASSERT_TRUE(answer && *answer);
  EXPECT_EQ((*answer)->history.retention, std::chrono::hours(48));
  EXPECT_FALSE(answer_within(reader, 50ms));
  reader.ask();
  EXPECT_TRUE(answer_within(reader, 10s));
  EXPECT_EQ(disk->begun, 3);
}

TEST(ConfigurationReader, ProblemsAreReported) {
  ConfigurationReader reader([]() -> Configured { throw std::runtime_error("no memory"); });
  reader.ask();
  const auto answer = answer_within(reader, 10s);
  ASSERT_TRUE(answer);
  ASSERT_FALSE(*answer);
  EXPECT_EQ(answer->error().front(), "no memory");
}

}  // namespace
}  // namespace ssdpulse::config
