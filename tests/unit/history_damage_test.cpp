// SPDX-License-Identifier: Apache-2.0
// Does the history continue, and keep its content, whatever happens to its file and its disk?
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "daemon/history/database_file.h"
#include "daemon/history/history.h"
#include "daemon/history/past_reader.h"
#include "tests/unit/history_rig.h"

namespace ssdpulse::history {
namespace {

// ---- bad files

/// A real database with a few hundred rows, as bytes.
std::string real_database(int rows) {
  Rig rig;
  History& history = rig.start();
  for (int i = 0; i < rows; ++i) {
    history.add(
        {{row_at(kBegin - std::chrono::minutes(rows - i)), row_at(kBegin - std::chrono::minutes(i), {"2", "2", "2"})},
         {{kDrive, model::Bytes(6000, 5)}}});
  }
  rig.stop();
  return content_of(rig.file());
}

/// For any bytes: the history works afterwards, a file that it could not use is kept as it was, and what it goes on
/// with is what was in that file.
void expect_survives(const std::string& content, bool must_be_set_aside) {
  Rig rig;
  rig.write_file(content);
  rig.start();
  rig.expect_works();
  const auto kept = rig.set_aside_files();
  EXPECT_EQ(kept.size(), rig.status().files_set_aside);
  EXPECT_LE(kept.size(), 1U);
  if (must_be_set_aside) {
    ASSERT_EQ(kept.size(), 1U);
  }
  if (!kept.empty()) {
    EXPECT_TRUE(content_of(kept[0]) == content);
    EXPECT_EQ(kept[0], rig.file() + ".set-aside-20250219T212000Z");
  }
  auto minutes = rig.recall()->minutes;
  ASSERT_FALSE(minutes.empty());
  for (const model::DriveMinute& minute : minutes) {
    expect_equal(minute, row_at(minute.minute));
  }
  rig.stop();
  EXPECT_EQ(rig.sql("PRAGMA integrity_check"), "ok");
}

constexpr std::size_t kPage = 16384;  // of a new file

TEST(Damaged, garbage_is_set_aside) {
  for (const std::string& content :
       {std::string("x"), std::string("SQLite format 3\0", 16), std::string("SQLite format 3\0\x10\0\1\1", 20),
        std::string(100, '\0'), std::string(4096, 'x'), "SQLite format 3" + std::string(100'000, '\0')}) {
    SCOPED_TRACE(content.size());
    expect_survives(content, true);
  }
  expect_survives("", false);  // what a full disk leaves of a file that was just created
}

TEST(Damaged, truncated_anywhere) {
  const char* is_long = std::getenv("SSDPULSE_TEST_LONG");
#ifdef SSDPULSE_SANITIZED  // eight times slower: a quarter of the cuts, in the long tier, too
  constexpr std::size_t kSectors = 121;
#else
  constexpr std::size_t kSectors = 29;
#endif
  const std::size_t step = (is_long != nullptr && *is_long == '1' ? 5 : kSectors) * std::size_t{512};
  const std::string whole = real_database(60);
  ASSERT_GT(whole.size(), 8 * kPage);
  for (std::size_t bytes = 512; bytes < whole.size(); bytes += step) {
    SCOPED_TRACE(bytes);
    expect_survives(whole.substr(0, bytes), true);
  }
}

TEST(Damaged, a_state_that_lost_its_end_is_not_filled_with_zeros) {
  Rig rig;
  rig.start().add({{}, {{kDrive, model::Bytes(20'000, 5)}}});
  rig.stop();
  std::string content = content_of(rig.file());
  content.resize(content.size() - kPage + 100);  // the last page holds nothing else
  expect_survives(content, true);
}

RC_GTEST_PROP(Damaged, flipped_bits_are_survived, ()) {
  static const std::string kWhole = real_database(60);
  std::string content = kWhole;
  for (int i = *rc::gen::inRange(1, 6); i > 0; --i) {
    // Half of the damage where it hurts: the header of the file, or of a page.
    const auto page = *rc::gen::inRange<std::size_t>(0, content.size() / kPage);
    const auto within = *rc::gen::weightedOneOf<std::size_t>(
        {{1, rc::gen::inRange<std::size_t>(0, 110)}, {1, rc::gen::inRange<std::size_t>(0, kPage)}});
    auto& byte = content[page * kPage + within];
    byte = static_cast<char>(byte ^ 1 << *rc::gen::inRange(0, 8));
  }
  expect_survives(content, false);
  RC_ASSERT(!testing::Test::HasFailure());
}

TEST(Damaged, a_file_of_another_kind_or_time_is_set_aside) {
  const std::vector<std::string> edits{
      "PRAGMA user_version = 2",
      "PRAGMA user_version = 0",
      "PRAGMA application_id = 1",
      "CREATE TABLE more (a)",
      "CREATE TRIGGER t AFTER INSERT ON drive_minute BEGIN DELETE FROM drive; END",
      "DROP TABLE drive",
      "ALTER TABLE drive ADD COLUMN more INTEGER",
      "PRAGMA journal_mode = WAL",
      "PRAGMA ignore_check_constraints = ON; UPDATE drive_minute SET host_count = x'01'",
      "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, ' STRICT', '')",
  };
  for (const std::string& edit : edits) {
    SCOPED_TRACE(edit);
    Rig rig;
    rig.start().add({{row_at(kBegin - 1min)}, {}});
    rig.stop();
    rig.sql(edit);
    rig.start();
    rig.expect_works();
    EXPECT_EQ(rig.set_aside_files().size(), 1U);
    EXPECT_EQ(rig.recall()->minutes.size(), 1U);
  }
}

TEST(Damaged, a_file_of_a_newer_version_is_named_as_such) {
  Rig rig;
  rig.start().add({{row_at(kBegin - 1min)}, {}});
  rig.stop();
  rig.sql("PRAGMA user_version = 2");
  const std::atomic<bool> stop = false;
  std::optional<FileIdentity> checked;
  const auto opened = open_database(rig.file(), std::uint64_t{1} << 30, checked, stop);
  ASSERT_FALSE(opened.has_value());
  EXPECT_NE(opened.error().message.find("written by a newer version of ssdpulse (schema 2"), std::string::npos)
      << opened.error().message;
  const auto read = PastReader::open(rig.file(), 25ms, std::chrono::steady_clock::now() + 60s);
  ASSERT_FALSE(read.has_value());
  EXPECT_NE(read.error().message.find("was written by a newer version of ssdpulse"), std::string::npos)
      << read.error().message;
}

TEST(Damaged, a_file_of_a_build_before_the_release_is_set_aside_and_named_as_such) {
  for (const int version : {1, 2, 3, 4, 5}) {
    SCOPED_TRACE(version);
    Rig rig;
    rig.directory_exists();
    rig.sql(
        "CREATE TABLE drive_minute (minute INTEGER NOT NULL, read_p99_seconds REAL); INSERT INTO drive_minute VALUES "
        "(28999999, 0.5); PRAGMA application_id = 1397965904; PRAGMA user_version = " +
            std::to_string(version),
        0);
    const std::string content = content_of(rig.file());
    const auto read = PastReader::open(rig.file(), 25ms, std::chrono::steady_clock::now() + 60s);
    ASSERT_FALSE(read.has_value());
    EXPECT_NE(read.error().message.find("the daemon sets the file aside"), std::string::npos) << read.error().message;
    const std::atomic<bool> stop = false;
    std::optional<FileIdentity> checked;
    const auto opened = open_database(rig.file(), std::uint64_t{1} << 30, checked, stop);
    ASSERT_FALSE(opened.has_value());
    EXPECT_TRUE(opened.error().damaged);
    EXPECT_NE(opened.error().message.find("written by a build of ssdpulse from before 1.0.0"), std::string::npos)
        << opened.error().message;
    EXPECT_EQ(content_of(rig.file()), content) << "neither has changed it";
    rig.start();
    rig.expect_works();
    ASSERT_EQ(rig.set_aside_files().size(), 1U);
    EXPECT_EQ(content_of(rig.set_aside_files()[0]), content);
    EXPECT_EQ(rig.recall()->minutes.size(), 1U) << "of the new file alone";
  }
}

TEST(Damaged, edited_values_are_read_within_bounds) {
  Rig rig;
  for (int i = 1; i <= 5; ++i) {
    rig.start().add({{row_at(kBegin - std::chrono::minutes(i))}, {}});
    rig.stop();
  }
  rig.sql("UPDATE drive_minute SET host_rounding = 3 WHERE minute % 5 = 0");
  rig.sql("UPDATE drive_minute SET host_unit_bytes = NULL WHERE minute % 5 = 1");
  rig.sql("UPDATE drive_minute SET temperature_celsius = 9e999 WHERE minute % 5 = 2");
  rig.sql("UPDATE drive_minute SET source = hex(zeroblob(500)) WHERE minute % 5 = 3");
  rig.sql("UPDATE drive SET state = zeroblob(10)");
  rig.start();
  const auto recalled = rig.recall();
  ASSERT_TRUE(recalled.has_value());
  EXPECT_EQ(recalled->minutes.size(), 1U);
  EXPECT_EQ(recalled->unreadable, 4U);
  EXPECT_EQ(rig.status().rows_unreadable, 4U);
  EXPECT_EQ(recalled->state->bytes, model::Bytes(10));
  rig.expect_works();
}

TEST(Damaged, a_file_that_goes_bad_in_use_is_set_aside_a_minute_later) {
  Rig rig;
  History& history = rig.start();
  for (int i = 0; i < 100; ++i) {
    history.add({{row_at(kBegin - std::chrono::minutes(i))}, {}});
  }
  ASSERT_TRUE(rig.wait_rows(100));
  {
    std::fstream file(rig.file(), std::ios::in | std::ios::out | std::ios::binary);
    file << std::string(std::filesystem::file_size(rig.file()), '\xa5');
  }
  history.add({{row_at(kBegin)}, {}});
  ASSERT_TRUE(rig.wait_rows(101));
  EXPECT_EQ(rig.status().files_set_aside, 1U);
  rig.expect_works();
  EXPECT_EQ(rig.set_aside_files().size(), 1U);
}

TEST(Damaged, a_file_removed_in_use_is_created_again) {
  Rig rig;
  History& history = rig.start();
  rig.expect_works();
  std::filesystem::remove(rig.file());
  history.add({{row_at(kBegin)}, {}});
  ASSERT_TRUE(rig.wait_rows(3));
  rig.expect_works();
  EXPECT_TRUE(std::filesystem::exists(rig.file()));
  EXPECT_TRUE(rig.set_aside_files().empty());
}

TEST(Damaged, only_the_newest_are_kept_and_never_are_those_of_a_day_removed) {
  Rig rig;
  for (int i = 0; i < 5; ++i) {
    rig.write_file("garbage " + std::to_string(i));
    rig.set_now(kBegin + std::chrono::hours(25 * i));
    rig.start();
    rig.expect_works();
    rig.stop();
  }
  auto kept = rig.set_aside_files();
  ASSERT_EQ(kept.size(), 3U);
  EXPECT_EQ(content_of(kept[0]), "garbage 2");
  EXPECT_EQ(content_of(kept[2]), "garbage 4");
  for (int i = 5; i < 7; ++i) {  // in the same minute: names do not collide
    rig.write_file("garbage " + std::to_string(i));
    rig.start();
    rig.expect_works();
    rig.stop();
  }
  kept = rig.set_aside_files();
  ASSERT_EQ(kept.size(), 3U);
  EXPECT_EQ(content_of(kept[0]), "garbage 4");
  rig.write_file("garbage 7");
  rig.start();
  ASSERT_TRUE(rig.wait([](const Status& status) { return status.failures > 2; }));
  EXPECT_NE(rig.status().reason.find("3 files were set aside within a day"), std::string::npos) << rig.status().reason;
  EXPECT_EQ(rig.status().obstacle, Obstacle::damaged);
  EXPECT_EQ(content_of(rig.file()), "garbage 7");
  EXPECT_EQ(rig.set_aside_files(), kept);
}

TEST(Damaged, a_file_that_is_not_regular_is_kept) {
  for (const bool pipe : {true, false}) {
    Rig rig;
    rig.directory_exists();
    ASSERT_EQ(pipe ? ::mkfifo(rig.file().c_str(), 0600) : ::mkdir(rig.file().c_str(), 0700), 0);
    rig.start();
    ASSERT_TRUE(rig.wait([](const Status& status) { return status.failures > 0; }));
    EXPECT_NE(rig.status().reason.find("is not a regular file"), std::string::npos) << rig.status().reason;
    EXPECT_EQ(rig.status().obstacle, Obstacle::wrong_file_type);
    ASSERT_EQ(::rename(rig.file().c_str(), (rig.directory() + "/other").c_str()), 0);
    ASSERT_TRUE(rig.wait([](const Status& status) { return status.up; }));
  }
}

// ---- bad disks

/// While it exists, no file of this process grows beyond this many bytes.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() { ::setrlimit(RLIMIT_FSIZE, &before_); }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
};

TEST(Disk, writes_that_fail_stop_the_history_with_a_reason_until_they_do_not) {
  constexpr int kRows = 1000;  // more than the existing pages have room for
  Rig rig;
  History& history = rig.start();
  rig.expect_works();
  {
    const FileSizeLimit limit(std::filesystem::file_size(rig.file()));
    for (int i = 0; i < kRows; ++i) {
      history.add({{row_at(kBegin - std::chrono::minutes(i + 1))}, {}});
    }
    ASSERT_TRUE(rig.wait([](const Status& status) { return status.failures > 2; }));
    for (int i = 0; i < 200; ++i) {  // about ten attempts: a file that can be opened is not yet usable
      ASSERT_FALSE(rig.status().up);
      ASSERT_FALSE(rig.status().reason.empty());
      std::this_thread::sleep_for(200us);
    }
    EXPECT_LT(rig.status().rows_written(), kRows + 2U);
  }
  ASSERT_TRUE(rig.wait_rows(kRows + 2));
  EXPECT_EQ(rig.recall()->minutes.size(), kRows + 1U);
  EXPECT_EQ(rig.status().rows_dropped(), 0U);
  EXPECT_TRUE(rig.set_aside_files().empty());
}

TEST(Disk, a_file_that_cannot_even_be_begun_is_begun_later) {
  Rig rig;
  {
    const FileSizeLimit limit(1000);
    rig.start();
    ASSERT_TRUE(rig.wait([](const Status& status) { return status.failures > 2; }));
    EXPECT_FALSE(rig.status().up);
  }
  rig.expect_works();
  EXPECT_TRUE(rig.set_aside_files().empty());
}

TEST(Disk, somebody_who_holds_the_file_delays_and_does_no_harm) {
  Rig rig;
  History& history = rig.start();
  rig.expect_works();
  sqlite3* reader = nullptr;
  ASSERT_EQ(sqlite3_open(rig.file().c_str(), &reader), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(reader, "BEGIN; SELECT count(*) FROM drive_minute", nullptr, nullptr, nullptr), SQLITE_OK);
  history.add({{row_at(kBegin - 1min)}, {}});
  ASSERT_TRUE(rig.wait([](const Status& status) { return status.failures > 0; }));  // after SQLite's own wait
  EXPECT_NE(rig.status().reason.find("locked"), std::string::npos) << rig.status().reason;
  EXPECT_EQ(rig.status().obstacle, Obstacle::locked);
  sqlite3_close(reader);
  ASSERT_TRUE(rig.wait_rows(3));
  rig.expect_works();
}

TEST(Disk, the_caller_never_waits) {
  Rig rig;
  rig.write_file(real_database(300));
  sqlite3* holder = nullptr;  // every access of the history waits seconds for it
  ASSERT_EQ(sqlite3_open(rig.file().c_str(), &holder), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(holder, "BEGIN EXCLUSIVE", nullptr, nullptr, nullptr), SQLITE_OK);
  auto longest = 0ns;
  const auto watched = [&](const auto& call) {
    const auto begin = std::chrono::steady_clock::now();
    call();
    longest = std::max<std::chrono::nanoseconds>(longest, std::chrono::steady_clock::now() - begin);
  };
  History* history = nullptr;
  std::future<util::Result<model::Recalled>> answer;
  watched([&] { history = &rig.start(); });
  watched([&] { answer = history->recall(kDrive, model::Minute{}); });
  for (int i = 0; i < 10'000; ++i) {
    watched([&] { history->add({{row_at(kBegin)}, {}}); });
  }
  watched([&] { EXPECT_FALSE(rig.status().up); });
  EXPECT_EQ(rig.status().obstacle, Obstacle::opening) << "a check that takes seconds is no trouble";
  EXPECT_LT(longest, 1500ms) << "the file is waited for 2 s";
  EXPECT_GT(rig.status().rows_dropped(), 5000U);
  EXPECT_EQ(answer.wait_for(0s), std::future_status::timeout);
  sqlite3_close(holder);
  EXPECT_TRUE(answer.get().has_value());
}

TEST(Obstacle, each_has_its_own_remedy) {
  const std::vector<std::pair<int, const char*>> table{
      {ENOSPC, "make room"},  {EDQUOT, "quota"},           {EACCES, "writable"},   {EROFS, "writable"},
      {ENOENT, "create it"},  {ENOTDIR, "to a directory"}, {EIO, "journalctl -k"}, {ESTALE, "journalctl -k"},
      {EFBIG, "LimitFSIZE="}, {EMFILE, "LimitNOFILE="},    {ENOMEM, "MemoryMax"},  {EINVAL, "runbook"},
  };
  for (const auto& [error, words] : table) {
    EXPECT_NE(remedy(obstacle_of(error)).find(words), std::string_view::npos) << error;
    EXPECT_EQ(remedy(obstacle_of(error)).find("make room") != std::string_view::npos,
              obstacle_of(error) == Obstacle::no_space);
  }
  EXPECT_EQ(remedy(Obstacle::opening), "") << "there is nothing to do";
}

TEST(Obstacle, of_a_directory) {
  Rig rig;
  rig.options().directory += "/missing/parent";
  rig.start();
  ASSERT_TRUE(rig.wait([](const Status& status) { return status.failures > 0; }));
  EXPECT_EQ(rig.status().obstacle, Obstacle::missing);

  Rig file;
  std::ofstream(file.directory()) << "no directory";
  file.start();
  ASSERT_TRUE(file.wait([](const Status& status) { return status.failures > 0; }));
  EXPECT_EQ(file.status().obstacle, Obstacle::wrong_file_type) << file.status().reason;

  Rig shared;
  shared.start().add({{row_at(kBegin)}, {}});
  ASSERT_TRUE(shared.wait_rows(1));
  Options options;
  options.directory = shared.directory();
  options.retry_interval = 10ms;
  const auto other = History::open(options);
  ASSERT_TRUE(other);
  for (int i = 0; i < 500 && (*other)->status().failures == 0; ++i) {
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_EQ((*other)->status().obstacle, Obstacle::another_daemon) << (*other)->status().reason;
}

}  // namespace
}  // namespace ssdpulse::history
