// SPDX-License-Identifier: Apache-2.0
// Is a recorded load read as written, and is each error reported with its line?
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "daemon/flash/load_simulation.h"
#include "tests/unit/flash_loads.h"

namespace ssdpulse::flash {
namespace {

constexpr std::uint64_t kSize = 1'000'000;

std::string flaw(std::string_view line) {
  const auto parsed = parse_load_line(line, kSize);
  return parsed ? "" : parsed.error().message;
}

TEST(LoadLine, SaysWhatWasDone) {
  const auto write = parse_load_line(" W, 4096 ,512,short\r", kSize);
  ASSERT_TRUE(write && *write);
  EXPECT_FALSE((*write)->discard);
  EXPECT_EQ((*write)->offset, 4096U);
  EXPECT_EQ((*write)->bytes, 512U);
  EXPECT_EQ((*write)->hint, 2);
  EXPECT_EQ((*parse_load_line("W,0,1,5", kSize))->hint, 5);
  EXPECT_TRUE((*parse_load_line("D,0,1000000", kSize))->discard);
  for (const char* nothing : {"", "  ", "# W,1,2", "W,0,0", "D,1000000,0"}) {
    const auto parsed = parse_load_line(nothing, kSize);
    EXPECT_TRUE(parsed && !*parsed) << nothing;
  }
}

TEST(LoadLine, SaysWhatIsWrong) {
  for (const char* line : {"R,0,1", "W", "W,1", "W,0,1,2,3", "D,0,1,short", "w,0,1", ",,", "W;0;1", "\xff"}) {
    EXPECT_EQ(flaw(line).rfind("expected W,OFFSET,BYTES[,HINT] or D,OFFSET,BYTES, found '", 0), 0U) << line;
  }
  EXPECT_EQ(flaw("W,12x,4096"), "the offset '12x' is not a number of bytes");
  EXPECT_EQ(flaw("W,-1,4096"), "the offset '-1' is not a number of bytes");
  EXPECT_EQ(flaw("W,0,18446744073709551616"), "the size '18446744073709551616' is not a number of bytes");
  EXPECT_EQ(flaw("W,999999,2"), "2 bytes at 999999 are beyond the 1000000 bytes of the drive");
  EXPECT_EQ(flaw("D,18446744073709551615,2"),
            "2 bytes at 18446744073709551615 are beyond the 1000000 bytes of the drive");
  EXPECT_EQ(flaw("W,0,1,hot"), "the hint 'hot' is not one of not_set, none, short, medium, long, extreme, 0 to 5");
  EXPECT_EQ(flaw("W,0,1,6"), "the hint '6' is not one of not_set, none, short, medium, long, extreme, 0 to 5");
  EXPECT_EQ(flaw("W\x1b[31m"), "expected W,OFFSET,BYTES[,HINT] or D,OFFSET,BYTES, found 'W?[31m'");
}

TEST(LoadLog, ReadsLinesAcrossItsBuffer) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) {
    text += "W," + std::to_string(i) + ",1\n";
    text += i % 3 == 0 ? "\n# nothing\n" : "";
  }
  text += "D,5,6";  // without an end of line
  std::istringstream input(text);
  LoadLog log(input, "log", kSize);
  for (std::uint64_t i = 0; i < 100'000; ++i) {
    const auto line = log.next();
    ASSERT_TRUE(line && *line);
    ASSERT_EQ((*line)->offset, i);
  }
  EXPECT_EQ((*log.next())->bytes, 6U);
  const auto end = log.next();
  EXPECT_TRUE(end && !*end);
  EXPECT_EQ(log.bytes_read(), text.size());
}

TEST(LoadLog, NamesTheLine) {
  std::istringstream input("W,0,1\n\nW,0,1\nW,zero,1\n");
  LoadLog log(input, "trace.csv", kSize);
  EXPECT_TRUE(log.next() && log.next());
  const auto wrong = log.next();
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().message, "trace.csv:4: the offset 'zero' is not a number of bytes");
}

TEST(LoadLog, ALineWithoutEndIsNotKept) {
  std::istringstream input("W,0,1\n" + std::string(3'000'000, '1'));
  LoadLog log(input, "x", kSize);
  EXPECT_TRUE(log.next());
  const auto wrong = log.next();
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().message, "x:2: longer than 1024 characters");
  EXPECT_LT(log.bytes_read(), 1'000'000U);
}

SimulateArguments usual() {
  SimulateArguments arguments;
  arguments.input = "-";
  arguments.size_bytes = std::uint64_t{960} * 1000 * 1000 * 1000;
  return arguments;
}

TEST(SimulationPlan, AsksForAllCombinations) {
  auto arguments = usual();
  arguments.overprovisioning = {7, 12.5};
  arguments.policies = {"fifo", "greedy"};
  arguments.placements = {"none", "hints"};
  arguments.discards = "ignored";
  arguments.start = "empty";
  arguments.window = "25-75.5";
  const auto plan = plan_simulation(arguments);
  ASSERT_TRUE(plan);
  ASSERT_EQ(plan->settings.what_ifs.size(), 8U);
  EXPECT_EQ(plan->settings.what_ifs[5],
            (model::WhatIf{0.125, model::CollectionPolicy::fifo, model::Discards::ignored, model::Placement::hints}));
  EXPECT_FALSE(plan->settings.starts_full);
  EXPECT_EQ(plan->settings.sample_pages, 65'536U);
  EXPECT_EQ(plan->window.from, 0.25);
  EXPECT_EQ(plan->window.to, 0.755);
}

TEST(SimulationPlan, SaysWhatIsWrong) {
  const auto flaw_of = [](auto change) {
    auto arguments = usual();
    change(arguments);
    const auto plan = plan_simulation(arguments);
    return plan ? std::string() : plan.error().message.substr(0, plan.error().message.find(':'));
  };
  EXPECT_EQ(flaw_of([](auto&) {}), "");
  for (const double percent : {0.0, -7.0, 401.0, std::nan("")}) {
    EXPECT_EQ(flaw_of([&](auto& asked) { asked.overprovisioning = {percent}; }), "--op") << percent;
  }
  for (const char* window : {"", "50", "60-50", "50-50", "-1-50", "0-101", "0-x", "nan-50"}) {
    EXPECT_EQ(flaw_of([&](auto& asked) { asked.window = window; }), "--window") << window;
  }
  EXPECT_EQ(flaw_of([](auto& asked) { asked.policies = {"best"}; }), "--policy");
  EXPECT_EQ(flaw_of([](auto& asked) { asked.placements = {"best"}; }), "--placement");
  EXPECT_EQ(flaw_of([](auto& asked) { asked.discards = "maybe"; }), "--discards");
  EXPECT_EQ(flaw_of([](auto& asked) { asked.start = "half"; }), "--start");
  EXPECT_EQ(flaw_of([](auto& asked) { asked.size_bytes = 0; }), "--size");
  EXPECT_EQ(flaw_of([](auto& asked) { asked.size_bytes = UINT64_MAX; }), "--size");
  EXPECT_EQ(flaw_of([](auto& asked) { asked.page_bytes = 0; }), "--page-size");
  EXPECT_EQ(flaw_of([](auto& asked) { asked.page_bytes = 5000; }), "--page-size");
  EXPECT_EQ(flaw_of([](auto& asked) { asked.sample_pages = 100; }), "--sample");
  EXPECT_EQ(flaw_of([](auto& asked) { asked.full = true; }), "this would take more than 4 GiB of memory");
  EXPECT_EQ(flaw_of([](auto& asked) { asked.size_bytes = std::uint64_t{256} << 40; }), "");
}

}  // namespace
}  // namespace ssdpulse::flash
