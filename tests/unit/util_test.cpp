// SPDX-License-Identifier: Apache-2.0
// The small helpers: globs as a shell understands them, bounded reading, log lines by their reader, and their limiter.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <iomanip>
#include <sstream>
#include <stdexcept>

#include "daemon/base/child_process.h"
#include "daemon/base/file_descriptor.h"
#include "daemon/base/glob.h"
#include "daemon/base/log.h"
#include "daemon/base/tcp_listeners.h"
#include "daemon/base/text_table.h"
#include "daemon/base/varints.h"
#include "tests/fixtures/temporary_tree.h"

namespace ssdpulse {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Table, LeavesTheStreamAsItWas) {
  std::ostringstream out;
  util::print_table({{"A", "B"}, {"long", ""}}, out);
  out << std::setw(3) << 7;
  EXPECT_EQ(out.str(), "A     B\nlong  -\n  7");
}

TEST(Glob, MeansWhatAShellMeans) {
  EXPECT_TRUE(util::glob_matches("*", "nvme0n1"));
  EXPECT_TRUE(util::glob_matches("nvme*n1", "nvme10n1"));
  EXPECT_TRUE(util::glob_matches("sd[a-c]", "sdb"));
  EXPECT_TRUE(util::glob_matches("sd?", "sdz"));
  EXPECT_FALSE(util::glob_matches("sd?", "sdaa"));
  EXPECT_FALSE(util::glob_matches("sd[!a]", "sda"));
  EXPECT_FALSE(util::glob_matches("nvme", "nvme0n1"));
  EXPECT_FALSE(util::glob_matches("", "sda"));
  EXPECT_TRUE(util::any_glob_matches({"loop*", "zram*"}, "zram0"));
  EXPECT_FALSE(util::any_glob_matches({"loop*", "zram*"}, "sda"));
  EXPECT_FALSE(util::any_glob_matches({}, "sda"));
}

/// Who gets a connection to this address and port 10936, of those in the tables?
std::vector<std::uint32_t> users_at(const std::vector<util::TcpListener>& all, const char* address) {
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  v4.sin_family = AF_INET;
  v6.sin6_family = AF_INET6;
  v4.sin_port = v6.sin6_port = htons(10936);
  const bool is_v4 = ::inet_pton(AF_INET, address, &v4.sin_addr) == 1;
  if (!is_v4) {
    EXPECT_EQ(::inet_pton(AF_INET6, address, &v6.sin6_addr), 1) << address;
  }
  std::vector<std::uint32_t> users;
  for (const auto& one :
       util::listeners_at(all, is_v4 ? reinterpret_cast<const sockaddr&>(v4) : reinterpret_cast<const sockaddr&>(v6))) {
    users.push_back(one.user);
  }
  return users;
}

// As the kernel writes them: each 32 bits as a number, those that listen first.
TEST(Varints, AreWholeOrNothing) {
  constexpr std::uint64_t kNumbers[] = {0, 1, 127, 128, 16'383, 16'384, 1ULL << 62, ~0ULL};
  util::VarintWriter out;
  for (const std::uint64_t number : kNumbers) {
    out.put(number);
  }
  const std::string bytes = out.put_signed(-1).append("end").take();
  util::VarintReader in(bytes);
  for (const std::uint64_t number : kNumbers) {
    EXPECT_EQ(in.take(), number);
  }
  EXPECT_EQ(in.take_signed(), -1);
  EXPECT_FALSE(in.whole());
  EXPECT_EQ(in.take_bytes(3), "end");
  EXPECT_TRUE(in.whole());
  EXPECT_EQ(in.take(), 0U);
  EXPECT_FALSE(in.good());
  EXPECT_EQ(util::VarintReader("\x05").take(4), 0U) << "beyond its bound";
  util::VarintReader endless("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff");
  EXPECT_EQ(endless.take(), 0U);
  EXPECT_EQ(endless.take_bytes(1), "") << "nothing is good after that";
}

TEST(TcpListeners, TheMostSpecificGetsTheConnection) {
  const tests::TemporaryTree tree;
  const std::string head =
      "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";
  const auto line = [](const std::string& local, const std::string& remote, const char* state, int user) {
    return "   0: " + local + " " + remote + " " + state + " 00000000:00000000 00:00000000 00000000  " +
           std::to_string(user) + "        0 812 1 0 100 0 0 10 0\n";
  };
  const std::string none4 = "00000000:0000";
  const std::string none6 = std::string(32, '0') + ":0000";
  EXPECT_FALSE(util::tcp_listeners(tree.path("proc")));
  tree.file("proc/self/net/tcp", head + line("0100007F:2AB8", none4, "0A", 1) + line("026433C6:2AB8", none4, "0A", 2) +
                                     line("0100007F:2AB9", none4, "0A", 3) +
                                     line("0100007F:2AB8", "0100007F:9999", "01", 4) +
                                     line("0500007F:2AB8", none4, "0A", 5));
  tree.file("proc/self/net/tcp6", head + line(std::string(32, '0') + ":2AB8", none6, "0A", 6) +
                                      line("00000000000000000000000001000000:2AB8", none6, "0A", 7) +
                                      line("0000000000000000FFFF00000300007F:2AB8", none6, "0A", 8) + "rubbish\n");
  const auto all = util::tcp_listeners(tree.path("proc"));
  ASSERT_TRUE(all);
  EXPECT_EQ(all->size(), 6U) << "a listener after a connection is not looked for";
  EXPECT_EQ(users_at(*all, "127.0.0.1"), std::vector<std::uint32_t>{1});
  EXPECT_EQ(users_at(*all, "198.51.100.2"), std::vector<std::uint32_t>{2});
  EXPECT_EQ(users_at(*all, "127.0.0.3"), std::vector<std::uint32_t>{8});
  EXPECT_EQ(users_at(*all, "127.0.0.2"), std::vector<std::uint32_t>{6});
  EXPECT_EQ(users_at(*all, "::1"), std::vector<std::uint32_t>{7});
  EXPECT_EQ(users_at(*all, "2001:db8::1"), std::vector<std::uint32_t>{6});
  EXPECT_TRUE(users_at({}, "127.0.0.1").empty());
}

TEST(ReadFile, WholeOrNotAtAll) {
  const tests::TemporaryTree tree;
  for (const std::size_t size : {0UL, 1UL, 4095UL, 4096UL, 4097UL, 100000UL}) {
    const std::string content(size, 'x');
    tree.file("f", content);
    const auto all = util::read_file(tree.path("f"), size);
    ASSERT_TRUE(all) << size;
    EXPECT_EQ(*all, content);
    if (size > 0) {
      const auto refused = util::read_file(tree.path("f"), size - 1);
      ASSERT_FALSE(refused) << size;
      EXPECT_EQ(refused.error().error_number, EFBIG);
    }
  }
  EXPECT_EQ(util::read_file(tree.path("none"), 10).error().error_number, ENOENT);
  EXPECT_EQ(util::read_file(tree.path(), 10).error().error_number, EISDIR);
}

/// Everything that `speak` writes to stderr; if `journal`, JOURNAL_STREAM names stderr, as under journald.
template <typename Speak>
std::string stderr_of(bool journal, Speak speak) {
  const tests::TemporaryTree tree;
  const util::UniqueFd file(::open(tree.path("log").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  struct stat status {};
  ::fstat(file.get(), &status);
  const auto stream = std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino + (journal ? 0 : 1));
  ::setenv("JOURNAL_STREAM", stream.c_str(), 1);
  const util::UniqueFd saved(::dup(STDERR_FILENO));
  ::dup2(file.get(), STDERR_FILENO);
  speak();
  ::dup2(saved.get(), STDERR_FILENO);
  ::unsetenv("JOURNAL_STREAM");
  return util::read_file(tree.path("log"), 1 << 20).value_or("unreadable");
}

TEST(Log, JournalGetsPriorities) {
  const std::string lines = stderr_of(true, [] {
    ASSERT_TRUE(log::set_up("debug", log::InJournal::lines));  // must not write to this host's journal
    log::debug("a");
    log::info("b", log::field("c", 1));
    log::warning("c");
    log::error("d");
  });
  EXPECT_EQ(lines, "<7>a\n<6>b c=1\n<4>c\n<3>d\n");
}

TEST(Log, JsonHasFields) {
  const std::string lines = stderr_of(true, [] {
    ASSERT_TRUE(log::set_up("info", log::InJournal::lines, log::Format::json));
    log::warning("{} is slow", log::field("device", "sda"), log::quoted("reason", "a b"));
  });
  EXPECT_NE(lines.find(R"(Z","level":"warning","message":"device=sda is slow reason=\"a b\"",)"
                       R"("fields":{"device":"sda","reason":"a b"}})"
                       "\n"),
            std::string::npos)
      << lines;
}

TEST(Log, OthersGetTimeAndLevelAndAnInheritedVariableDoesNotFool) {
  const std::string lines = stderr_of(false, [] {
    ASSERT_TRUE(log::set_up("warning"));
    log::info("silent");
    log::warning("heard");
  });
  std::string form = "dddd-dd-ddTdd:dd:dd.ddd[+-]dd:dd";
  for (auto digit = form.find('d'); digit != std::string::npos; digit = form.find('d', digit + 5)) {
    form.replace(digit, 1, "[0-9]");
  }
  EXPECT_TRUE(util::glob_matches(form + " warning heard\n", lines)) << lines;
}

TEST(Log, UnknownLevelIsRefusedByName) {
  const auto result = log::set_up("loud");
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().message.find("\"loud\""), std::string::npos);
  EXPECT_NE(result.error().message.find("warning"), std::string::npos);
}

TEST(Log, OfTooManyLinesOfAKindTheRestIsCounted) {
  const std::uint64_t before = log::lines_left_out();
  const std::string lines = stderr_of(true, [] {
    ASSERT_TRUE(log::set_up("debug", log::InJournal::lines));
    for (std::uint64_t i = 0; i < 10 * log::kMaxLinesPerKind; ++i) {
      log::info("mounted \"{}\"", i);
      log::info("setting changed", log::field("device", i), log::field("setting", "/run/{}", i));
      log::error("an error");
      log::debug("for us");
    }
    log::info("another kind");
    log::info("{} is another kind", log::field("device", "sda"));
    log::report_left_out();
    log::report_left_out();
  });
  const auto count = [&](const std::string& text) {
    std::size_t found = 0;
    for (std::size_t at = lines.find(text); at != std::string::npos; at = lines.find(text, at + 1)) {
      ++found;
    }
    return found;
  };
  EXPECT_EQ(count("<6>mounted"), log::kMaxLinesPerKind);
  EXPECT_EQ(count("<6>setting changed"), log::kMaxLinesPerKind);
  EXPECT_EQ(count("<3>an error"), 10 * log::kMaxLinesPerKind);
  EXPECT_EQ(count("<7>for us"), 10 * log::kMaxLinesPerKind);
  EXPECT_EQ(count("another kind"), 2U);
  EXPECT_EQ(count("lines=" + std::to_string(18 * log::kMaxLinesPerKind) + "\n"), 1U)
      << lines.substr(lines.size() - 200);
  EXPECT_EQ(log::lines_left_out() - before, 18 * log::kMaxLinesPerKind);
}

TEST(Log, AMinuteEnds) {
  log::KindLimiter limiter;
  const log::KindLimiter::Clock::time_point start{};
  const auto admitted = [&](const std::string& kind, std::uint64_t lines, auto at) {
    std::uint64_t some = 0;
    for (std::uint64_t i = 0; i < lines; ++i) {
      some += limiter.admit(kind, at) ? 1 : 0;
    }
    return some;
  };
  EXPECT_EQ(admitted("a", 1000, start), log::kMaxLinesPerKind);
  EXPECT_EQ(admitted("a", 1000, start + seconds(59)), 0U);
  EXPECT_EQ(admitted("a", 1000, start + seconds(60)), log::kMaxLinesPerKind);
  EXPECT_EQ(admitted("b", 1, start), 1U);
}

TEST(Limiter, OncePerIntervalAndKeyAndCountsTheRest) {
  log::Limiter limiter(seconds(10));
  const log::Limiter::Clock::time_point start{};
  EXPECT_EQ(limiter.admit("a", start), 0U);
  EXPECT_EQ(limiter.admit("b", start + seconds(1)), 0U);
  for (int i = 1; i < 10; ++i) {
    EXPECT_FALSE(limiter.admit("a", start + seconds(i)));
  }
  EXPECT_EQ(limiter.admit("a", start + seconds(10)), 9U);
  EXPECT_FALSE(limiter.admit("a", start + seconds(19)));
  EXPECT_EQ(limiter.admit("a", start + seconds(20)), 1U);
  EXPECT_EQ(limiter.admit("a", start + seconds(40)), 0U);
}

TEST(Limiter, KeysBeyondTheBoundShareOneUntilOthersExpire) {
  log::Limiter limiter(seconds(10), 3);
  const log::Limiter::Clock::time_point start{};
  EXPECT_TRUE(limiter.admit("a", start));
  EXPECT_TRUE(limiter.admit("b", start));
  EXPECT_TRUE(limiter.admit("c", start));
  EXPECT_TRUE(limiter.admit("d", start + seconds(1)));   // the shared one
  EXPECT_FALSE(limiter.admit("e", start + seconds(2)));  // shares it
  EXPECT_FALSE(limiter.admit("a", start + seconds(2)));
  EXPECT_EQ(limiter.admit("f", start + seconds(10)), 0U);  // a, b and c have expired: it has its own key again
  EXPECT_EQ(limiter.admit("g", start + seconds(10)), 0U);
}

TEST(InTime, AnswersAreWholeAndWhatNeverAnswersIsLeftBehind) {
  const std::string large(1U << 20U, 'x');
  EXPECT_EQ(util::in_time([&] { return large; }).value(), large);
  EXPECT_EQ(util::in_time([] { return std::string(); }).value(), "");
  EXPECT_FALSE(util::in_time([]() -> std::string { throw std::runtime_error("no"); }));
  const auto begin = std::chrono::steady_clock::now();
  const auto late = util::in_time(
      [] {
        ::pause();
        return std::string("late");
      },
      milliseconds(100));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().error_number, ETIMEDOUT);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(5));
}

TEST(InTime, NobodyWaitsForAStreamThatTheProcessLeftBehindHolds) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const util::UniqueFd in(ends[0]);
  util::UniqueFd out(ends[1]);
  EXPECT_FALSE(util::in_time(
      [] {
        ::sleep(2);
        return std::string();
      },
      milliseconds(50)));
  out.reset();
  char one = 0;
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(::read(in.get(), &one, 1), 0) << "its end";
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(1));
}

TEST(InTime, WhatCannotBeAskedIsNotSaidToHang) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto answers = util::file_answers("/");
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_FALSE(answers);
  EXPECT_EQ(answers.error().message, "/: its file system cannot be asked: no pipe: Too many open files");
  EXPECT_EQ(answers.error().error_number, EMFILE);
}

TEST(InTime, AFileThatIsNotThereAnswers) {
  EXPECT_TRUE(util::file_answers("/nonexistent/file"));
  EXPECT_TRUE(util::file_answers("/"));
  EXPECT_TRUE(util::file_answers("/proc/self/status"));
}

TEST(TimeLimitDeathTest, EndsTheProcessAndSaysSo) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const util::TimeLimit limit("audit", seconds(1));
        ::pause();
      },
      testing::ExitedWithCode(1), "ssdpulse audit gave up after 1 s: something that it asked does not answer");
}

TEST(TimeLimit, DoesNotAffectCommandsThatEnd) { const util::TimeLimit limit("audit", std::chrono::hours(1)); }

}  // namespace
}  // namespace ssdpulse
