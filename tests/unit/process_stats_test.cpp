// SPDX-License-Identifier: Apache-2.0
// The daemon's own figures: exact for a made-up /proc, plausible for the real one.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <limits>
#include <string>
#include <tuple>

#include "daemon/host/processes.h"
#include "tests/fixtures/temporary_tree.h"

namespace ssdpulse::host {
namespace {

// Fields are numbered by their value, so that a wrong one shows.
constexpr const char* kStat =
    "42 (a) b) ( c) S 4 5 6 7 8 9 10 11 12 13 1400 1500 16 17 18 19 20 21 2200 2300 24 25 26 27\n";

tests::TemporaryTree& write_proc(tests::TemporaryTree& tree, const std::string& limit) {
  tree.file("self/stat", kStat);
  tree.file("self/limits",
            "Limit                     Soft Limit           Hard Limit           Units     \n"
            "Max processes             77                   78                   processes \n"
            "Max open files            " +
                limit + "         4096                 files     \n");
  tree.file("stat", "cpu  1 2 3\nintr 5 btime 7\nbtime 1700000000\nprocesses 9\n");
  tree.add("self/fd", "0 -> /dev/null\n1 -> /dev/null\n7 -> /dev/null");
  return tree;
}

TEST(ProcessStats, ReadsEachField) {
  tests::TemporaryTree tree;
  write_proc(tree, "1024        ");
  const auto start = read_process_start_time(tree.path());
  ASSERT_TRUE(start) << start.error().message;
  const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  EXPECT_DOUBLE_EQ(*start, 1700000000 + 2200 / ticks);

  const auto stats = read_process_stats(12.5, tree.path());
  ASSERT_TRUE(stats) << stats.error().message;
  EXPECT_DOUBLE_EQ(stats->cpu_seconds, 2900 / ticks);
  EXPECT_EQ(stats->threads, 20U);
  EXPECT_EQ(stats->virtual_bytes, 2300U);
  EXPECT_EQ(stats->resident_bytes, 24U * static_cast<unsigned long>(::sysconf(_SC_PAGESIZE)));
  EXPECT_EQ(stats->max_fds, 1024U);
  EXPECT_DOUBLE_EQ(stats->start_time_seconds, 12.5);
  EXPECT_GE(stats->open_fds, 2U);  // one of the three may have the number of the directory's own descriptor
  EXPECT_LE(stats->open_fds, 3U);
}

TEST(ProcessStats, UnlimitedFilesAreTheLargestNumber) {
  tests::TemporaryTree tree;
  const auto stats = read_process_stats(0, write_proc(tree, "unlimited   ").path());
  ASSERT_TRUE(stats);
  EXPECT_EQ(stats->max_fds, std::numeric_limits<std::uint64_t>::max());
}

TEST(ProcessStats, SaysWhatIsMissing) {
  tests::TemporaryTree tree;
  const auto stats = read_process_stats(0, tree.path());
  ASSERT_FALSE(stats);
  EXPECT_NE(stats.error().message.find("self/stat"), std::string::npos);
  write_proc(tree, "10 ").file("self/stat", "42 (short) S 1 2\n");
  EXPECT_FALSE(read_process_stats(0, tree.path()));
  EXPECT_FALSE(read_process_start_time(tree.path()));
}

TEST(CpuTimes, AreOfEachName) {
  tests::TemporaryTree tree;
  for (const auto& [thread, name, ns] : {std::tuple("7", "ssdpulse", "1500000000"), std::tuple("8", "http", "20000000"),
                                         std::tuple("9", "http", "10000000")}) {
    const std::string directory = std::string("self/task/") + thread;
    tree.file(directory + "/comm", std::string(name) + "\n");
    tree.file(directory + "/schedstat", std::string(ns) + " 999 3\n");
  }
  tree.file("self/task/10/comm", "ended\n");
  const auto times = read_cpu_times(tree.path()).thread_seconds;
  EXPECT_EQ(times.size(), 2U) << "what ended meanwhile is not known";
  EXPECT_DOUBLE_EQ(times.at("ssdpulse"), 1.5);
  EXPECT_DOUBLE_EQ(times.at("http"), 0.03);
}

TEST(CpuTimes, OfThisProcessGrow) {
  const auto before = read_cpu_times();
  volatile std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < 20'000'000; ++i) {
    sum = sum + i;
  }
  const auto after = read_cpu_times();
  EXPECT_GT(after.process_seconds, before.process_seconds);
  ASSERT_EQ(after.thread_seconds.size(), 1U);
  EXPECT_GT(after.thread_seconds.begin()->second, before.thread_seconds.begin()->second);
}

TEST(ProcessStats, ThisProcess) {
  const auto start = read_process_start_time();
  ASSERT_TRUE(start) << start.error().message;
  const auto now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  EXPECT_LT(*start, now + 2);
  EXPECT_GT(*start, now - 600);

  const auto before = read_process_stats(*start);
  ASSERT_TRUE(before) << before.error().message;
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(before->max_fds, limit.rlim_cur);
  EXPECT_EQ(before->threads, 1U);
  EXPECT_GT(before->resident_bytes, 100U << 10U);
  EXPECT_GT(before->virtual_bytes, before->resident_bytes);

  std::uint64_t valid_fds = 0;
  for (int fd = 0; fd < 1024; ++fd) {
    valid_fds += ::fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
  }
  EXPECT_EQ(before->open_fds, valid_fds);
  const int extra = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const auto after = read_process_stats(*start);
  ::close(extra);
  ASSERT_TRUE(after);
  EXPECT_EQ(after->open_fds, before->open_fds + 1);
  EXPECT_EQ(read_process_stats(*start)->open_fds, before->open_fds);  // our own reading leaks nothing
}

}  // namespace
}  // namespace ssdpulse::host
