// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "daemon/cli/asked_times.h"

namespace ssdpulse::cli {
namespace {

using namespace std::chrono_literals;

const model::PastTime kMinute{std::chrono::minutes(29'000'000)};
const WallTime kNow = kMinute + 30s;

TEST(ParseWindow, TakesTimesAndDurations) {
  EXPECT_EQ(*parse_window("-2h..-1h", kNow), (model::Window{kMinute - 120min, kMinute - 60min}));
  EXPECT_EQ(*parse_window("2h", kNow), (model::Window{kMinute - 120min, kMinute}));
  EXPECT_EQ(*parse_window("-2h..", kNow), (model::Window{kMinute - 120min, kMinute}));
  EXPECT_EQ(*parse_window("-2h..now", kNow), (model::Window{kMinute - 120min, kMinute}));
  EXPECT_EQ(*parse_window("@1739998800..@1740000000", kNow),
            (model::Window{model::PastTime(28'999'980min), model::PastTime(29'000'000min)}));
  EXPECT_EQ(*parse_window("-1h..@3999999999", kNow), (model::Window{kMinute - 60min, kMinute}));  // never the future
}

TEST(ParseWindow, RejectsInvalidWindows) {
  for (const char* text : {"", "..", "soon", "-1h..-2h", "-10s..-5s", "-1h..-1h", "1h..2h", "@3999999999.."}) {
    EXPECT_FALSE(parse_window(text, kNow).has_value()) << text;
  }
}

TEST(FindWindows, BeforeMayBeADurationThatEndsWhereAfterBegins) {
  const auto windows = find_windows({.before = "1h", .after = "-30m.."}, kNow, {}, {});
  ASSERT_TRUE(windows.has_value());
  EXPECT_EQ(windows->after.from, kMinute - 30min);
  EXPECT_EQ(windows->before->to, kMinute - 30min);
  EXPECT_EQ(windows->before->from, kMinute - 90min);
}

TEST(FindWindows, MustNotOverlap) {
  EXPECT_FALSE(find_windows({.before = "-2h..-20m", .after = "-30m.."}, kNow, {}, {}).has_value());
}

TEST(FindWindows, LastIsOneWindow) {
  const auto windows = find_windows({.last = "24h"}, kNow, {}, {});
  EXPECT_FALSE(windows->before.has_value());
  EXPECT_EQ(windows->after, (model::Window{kMinute - 1440min, kMinute}));
}

TEST(FindWindows, AroundAChangeBothAreEquallyLong) {
  const auto windows = find_windows({.change = "@1739998800"}, kNow, {}, {});  // 20 minutes ago
  ASSERT_TRUE(windows.has_value());
  EXPECT_EQ(windows->before->to, kMinute - 20min);
  EXPECT_EQ(windows->after.from, kMinute - 9min);  // ten minutes to settle
  EXPECT_EQ(windows->after.to, kMinute);
  EXPECT_EQ(windows->before->from, kMinute - 29min);
  const auto narrow = find_windows({.change = "@1739998800", .settle = "1m", .width = "5m"}, kNow, {}, {});
  EXPECT_EQ(narrow->after, (model::Window{kMinute - 18min, kMinute - 13min}));
  EXPECT_EQ(narrow->before->from, kMinute - 25min);
}

TEST(FindWindows, TheLastChangeIsTheNewestMarkOrSetting) {
  const std::vector<model::Mark> marks{{kMinute - 100min, "deployment"}};
  const std::vector<model::SettingChange> settings{
      {kMinute - 300min, "", "kernel", "6.1", "6.12"},
      {kMinute - 105min, "nvme0n1", "queue.scheduler", "mq-deadline", "none"},
      {kMinute - 1min, "nvme1n1", "queue.scheduler", std::nullopt, "none"},  // seen for the first time: not a change
  };
  const auto windows = find_windows({.change = "last"}, kNow, marks, settings);
  ASSERT_TRUE(windows.has_value());
  EXPECT_EQ(windows->before->to, kMinute - 105min);  // both within ten minutes: one change
  EXPECT_EQ(windows->after.from, kMinute - 89min);
  EXPECT_EQ(windows->change, "nvme0n1 queue.scheduler and 1 more");
}

TEST(FindWindows, SaysWhatToDo) {
  const auto none = find_windows({.change = "last"}, kNow, {}, {});
  EXPECT_NE(none.error().message.find("ssdpulse mark"), std::string::npos);
  const auto soon = find_windows({.change = "@1739999700"}, kNow, {}, {});  // five minutes ago
  EXPECT_NE(soon.error().message.find("--settle"), std::string::npos);
}

}  // namespace
}  // namespace ssdpulse::cli
