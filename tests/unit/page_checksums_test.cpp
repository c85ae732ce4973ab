// SPDX-License-Identifier: Apache-2.0
// Is a page that is not as it was written an error, and never an answer? A history with rows in every table is damaged
// in a copy, and asked everything again. tests/unit/page_oracle.h knows the pages without the code under test.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "daemon/history/sqlite.h"
#include "daemon/history/store.h"
#include "tests/fixtures/temporary_tree.h"
#include "tests/unit/page_oracle.h"
#include "tests/unit/past_answers.h"

namespace ssdpulse::history {
namespace {

using namespace std::chrono_literals;
using model::Operation;
using tests::PagesOfFile;
using Random = std::mt19937_64;

const bool kInMemory = ::setenv("TMPDIR", "/dev/shm", 0) == 0;
constexpr model::Minute kBegin{std::chrono::minutes(29'000'040)};  // a whole hour
constexpr int kHours = 6;
constexpr model::Minute kEnd = kBegin + std::chrono::hours(kHours);
const model::Window kAll{kBegin - 2h, kEnd + 2h};
const std::set<std::string> kDevices{"sda", "sdb"};

int flips() {
  const char* value = std::getenv("SSDPULSE_TEST_LONG");
  return value != nullptr && *value == '1' ? 3000 : 100;
}

Random seeded() {
  const char* seed = std::getenv("SSDPULSE_TEST_SEED");
  return Random(seed != nullptr ? std::strtoull(seed, nullptr, 10) : 1);
}

std::uint64_t below(Random& random, std::uint64_t end) {
  return std::uniform_int_distribution<std::uint64_t>(0, end - 1)(random);
}

model::Bytes some_bytes(Random& random, std::size_t size) {
  model::Bytes bytes(size);
  std::generate(bytes.begin(), bytes.end(), [&] { return static_cast<std::uint8_t>(random()); });
  return bytes;
}

// ---- a history that has everything

const model::DriveKey kDrive{"serial", "model", "firmware"};

model::DeviceMinute device_minute(Random& random, const std::string& name, model::Minute minute) {
  model::DeviceMinute row{{"wwid of " + name, name, "model", "serial"}, minute, {}, {}};
  row.load.measured_ms = 60'000;
  row.load.operations[0].ios = below(random, 10'000);
  for (const auto latency : {model::Latency::read_total, model::Latency::write_total}) {
    model::LatencyBuckets dense(LATENCY_OVER_WORD + 1);
    for (int i = 0; i < 20; ++i) {
      dense[below(random, dense.size())] = 1 + below(random, 3000);
    }
    row.load.latency(latency) = {model::sparse(dense), random() >> 1U};
  }
  for (const char* tenant : {"backup.service", "database.service"}) {
    row.tenants.push_back({tenant, {}});
    row.tenants.back().totals[0] = {below(random, 100), below(random, 100'000), below(random, 1000)};
  }
  return row;
}

model::DriveMinute drive_minute(Random& random, model::Minute minute) {
  model::DriveMinute row;
  row.drive = kDrive;
  row.minute = minute;
  row.boottime = std::chrono::nanoseconds(random() >> 1U);
  row.source = "ocp";
  row.writes.host = model::ByteCounter{random(), 512'000, model::Rounding::up};
  row.writes.media = model::ByteCounter{random(), 1, model::Rounding::exact};
  row.temperature_celsius = static_cast<double>(below(random, 70));
  return row;
}

/// What happens in an hour.
model::Batch events(Random& random, model::Minute hour) {
  model::Batch batch;
  model::LatencySpike spike;
  spike.device = "sda";
  spike.operation = Operation::write;
  spike.begin = hour + 10min;
  spike.duration = 2500ms;
  spike.peak_seconds = 0.25 + static_cast<double>(below(random, 100));
  spike.baseline_seconds = 0.001;
  spike.ios = random() >> 1U;
  spike.cause = model::SpikeCause::gc;
  spike.evidence = {{model::EvidenceKey::media_written_bytes, static_cast<double>(below(random, 10'000))}};
  batch.spikes.push_back(std::move(spike));
  batch.bursts.push_back({hour + 10min, "sda", "fstrim", 1.5, below(random, 1'000'000)});
  batch.waits.push_back({hour + 10min, "full", "/data", "sdb", "backup.service", 3, "free_bytes=1", "btrfs", false});
  batch.spike_seconds.push_back({"sda", hour + 9min, hour + 12min, 1.5, some_bytes(random, 60'000)});
  batch.settings.push_back({"wwid of sda", "queue.scheduler", std::to_string(random())});
  batch.marks.push_back({hour + 20min, "deployed " + std::to_string(random())});
  batch.at = hour + 5min;
  return batch;
}

class Checksums : public testing::Test {
 protected:
  void SetUp() override {
    std::optional<FileIdentity> checked;
    auto store = Store::open(file(), {}, checked, stop_);
    ASSERT_TRUE(store.has_value());
    const auto write = [&](const model::Batch& batch, model::Minute now, std::chrono::milliseconds elapsed = 1min) {
      const auto written = store->write(batch, {now, elapsed});
      ASSERT_TRUE(written.has_value()) << written.error().message;
    };
    for (model::Minute minute = kBegin; minute < kEnd; minute += 1min) {
      model::Batch batch = (minute - kBegin).count() % 60 == 0 ? events(random_, minute) : model::Batch{};
      batch.minutes = {drive_minute(random_, minute)};
      batch.device_minutes = {device_minute(random_, "sda", minute), device_minute(random_, "sdb", minute)};
      write(batch, minute + 1min);
    }
    const model::Minute back = kEnd - 3h;  // the clock is set
    model::Batch late;
    late.device_minutes = {device_minute(random_, "sda", back)};
    late.states = {{kDrive, some_bytes(random_, 400'000)}};
    write(late, back);
    late.states = {{kDrive, some_bytes(random_, 50'000)}};  // leaves pages free
    write(late, back + 1min);
    store = tl::unexpected(Failure{});
    for (std::string table : rows("SELECT name FROM sqlite_schema WHERE type = 'table'")) {
      ASSERT_FALSE(rows("SELECT 1 FROM " + table).empty()) << table;
    }
    pages_.emplace(file());
    unused_ = pages_->unused();
    answers_ = ask(file());
    ASSERT_TRUE(std::all_of(answers_.begin(), answers_.end(), [](const auto& one) { return one.has_value(); }));
  }

  [[nodiscard]] std::string file() const { return tree_.path("ssdpulse.db"); }
  [[nodiscard]] std::string copy() const { return tree_.path("copy/ssdpulse.db"); }
  void write_copy(const std::string& content) const { tree_.file("copy/ssdpulse.db", content); }

  /// The first column of all rows, by an SQLite that knows no checksums.
  [[nodiscard]] std::vector<std::string> rows(const std::string& sql) const {
    sqlite3* handle = nullptr;
    EXPECT_EQ(sqlite3_open_v2(file().c_str(), &handle, SQLITE_OPEN_READONLY, nullptr), SQLITE_OK);
    std::vector<std::string> rows;
    const auto keep = [](void* out, int, char** values, char**) {
      static_cast<std::vector<std::string>*>(out)->emplace_back(values[0]);
      return 0;
    };
    EXPECT_EQ(sqlite3_exec(handle, sql.c_str(), keep, &rows, nullptr), SQLITE_OK) << sql;
    sqlite3_close(handle);
    return rows;
  }

  /// As the daemon opens it, with a check of the whole file or without.
  Outcome<Store> open(const std::string& path, bool check) {
    std::optional<FileIdentity> checked;
    struct stat status {};
    if (!check && ::stat(path.c_str(), &status) == 0) {
      checked = FileIdentity{status.st_dev, status.st_ino};
    }
    return Store::open(path, {}, checked, stop_);
  }

  /// Everything that can be asked.
  std::vector<Outcome<std::string>> ask(const std::string& path) {
    auto past = PastReader::open(path, 10s, std::chrono::steady_clock::now() + 60s);
    std::vector<Outcome<std::string>> all(answers_.size() - 1,
                                          past ? Outcome<std::string>("") : tl::unexpected(past.error()));
    if (past) {
      all = PastAnswers::of(*past, kAll, kDevices);
    }
    all.push_back(open(path, false).and_then([](Store store) {
      return store.recall(kDrive, kAll.from, kAll.to).map([](const auto& one) { return PastAnswers::text_of(one); });
    }));
    return all;
  }

  /// A copy with other bytes, of pages that are in use or not: damage is found by whoever opens it as the daemon does,
  /// and without that no question has another answer.
  void expect_found(const std::string& content, bool in_use) {
    write_copy(content);
    const auto opened = open(copy(), true);
    EXPECT_EQ(opened.has_value(), !in_use);
    EXPECT_TRUE(opened || opened.error().damaged) << opened.error().message;
    const auto answers = ask(copy());
    ASSERT_EQ(answers.size(), answers_.size());
    bool failed = false;
    for (std::size_t i = 0; i < answers.size(); ++i) {
      EXPECT_TRUE(!answers[i] || *answers[i] == *answers_[i]) << "another answer to question " << i;
      EXPECT_TRUE(answers[i] || answers[i].error().damaged) << answers[i].error().message;
      EXPECT_TRUE(answers[i] || in_use);
      failed = failed || !answers[i];
    }
    found_ += opened ? 0 : 1;
    unanswered_ += failed ? 1 : 0;
  }

  tests::TemporaryTree tree_;
  std::atomic<bool> stop_ = false;
  Random random_ = seeded();
  std::optional<PagesOfFile> pages_;
  std::set<std::size_t> unused_;
  std::vector<Outcome<std::string>> answers_{1};
  int found_ = 0;
  int unanswered_ = 0;  // questions met the damage, without a check of the whole file
};

TEST_F(Checksums, are_in_every_page) {
  EXPECT_EQ(pages_->reserved(), 8U);
  EXPECT_GT(pages_->count(), 60U);
  EXPECT_GT(unused_.size(), 10U);
  EXPECT_TRUE(pages_->mismatched().empty()) << *pages_->mismatched().begin();
  EXPECT_EQ(pages_->bytes.size() % pages_->page_bytes, 0U);
}

TEST_F(Checksums, are_in_pages_that_were_never_used_after_their_transaction) {
  std::optional<FileIdentity> checked;
  auto connection = open_database(file(), std::uint64_t{1} << 30U, checked, stop_);
  ASSERT_TRUE(connection);
  const std::string insert = "INSERT INTO spike_seconds SELECT NULL, 0, 0, 'sda', 0, zeroblob(900000), 0;";
  ASSERT_TRUE(connection->execute("BEGIN;" + insert + insert +
                                  "DELETE FROM spike_seconds WHERE id = (SELECT max(id) - 1 "
                                  "FROM spike_seconds); COMMIT"));
  const PagesOfFile pages(file());
  EXPECT_GT(pages.unused().size(), unused_.size() + 20);
  EXPECT_TRUE(pages.mismatched().empty()) << *pages.mismatched().begin();
}

TEST_F(Checksums, find_every_flipped_bit) {
  const int wanted = flips();
  for (int i = 0; i < wanted && !HasFailure(); ++i) {
    const std::size_t at = below(random_, pages_->bytes.size());
    SCOPED_TRACE("byte " + std::to_string(at));
    std::string content = pages_->bytes;
    content[at] = static_cast<char>(content[at] ^ 1 << below(random_, 8));
    expect_found(content, !unused_.contains(at / pages_->page_bytes + 1));
  }
  std::cout << wanted << " flipped bits in " << pages_->count() << " pages: " << found_ << " found when it is opened, "
            << wanted - found_ << " in the " << unused_.size() << " unused pages; " << unanswered_
            << " met by questions alone, none with another answer\n";
  EXPECT_GT(unanswered_, wanted / 3);
}

TEST_F(Checksums, find_every_flipped_bit_of_the_header) {
  for (std::size_t at = 0; at < 100 && !HasFailure(); ++at) {
    SCOPED_TRACE("byte " + std::to_string(at));
    std::string content = pages_->bytes;
    content[at] = static_cast<char>(content[at] ^ 1 << below(random_, 8));
    write_copy(content);
    const auto opened = open(copy(), true);
    ASSERT_FALSE(opened);
    EXPECT_TRUE(opened.error().damaged) << opened.error().message;
    const auto past = PastReader::open(copy(), 10s, std::chrono::steady_clock::now() + 60s);
    ASSERT_FALSE(past);
    EXPECT_NE(past.error().message.find("the daemon sets the file aside"), std::string::npos) << past.error().message;
  }
}

TEST_F(Checksums, find_sectors_of_zeros_and_pages_that_were_lost) {
  for (const std::size_t length : {std::size_t{512}, pages_->page_bytes}) {
    for (std::size_t page = 1; page <= pages_->count() && !HasFailure(); ++page) {
      const std::size_t at = pages_->begin(page) + below(random_, pages_->page_bytes / length) * length;
      SCOPED_TRACE(std::to_string(length) + " bytes of page " + std::to_string(page));
      std::string content = pages_->bytes;
      if (const std::string zeros(length, '\0'); content.compare(at, length, zeros) != 0) {
        content.replace(at, length, zeros);
        expect_found(content, !unused_.contains(page));
      }
    }
  }
}

TEST_F(Checksums, find_pages_that_were_written_to_each_others_place) {
  for (std::size_t page = 2; page <= pages_->count() && !HasFailure(); ++page) {
    const std::size_t other = 2 + below(random_, pages_->count() - 1);
    const std::string one_page = pages_->bytes.substr(pages_->begin(page), pages_->page_bytes);
    const std::string other_page = pages_->bytes.substr(pages_->begin(other), pages_->page_bytes);
    if (one_page.substr(0, 16'000) != other_page.substr(0, 16'000)) {  // unused pages are zeros
      SCOPED_TRACE(std::to_string(page) + " and " + std::to_string(other));
      std::string content = pages_->bytes;
      content.replace(pages_->begin(page), pages_->page_bytes, other_page);
      content.replace(pages_->begin(other), pages_->page_bytes, one_page);
      expect_found(content, !unused_.contains(page) || !unused_.contains(other));
    }
  }
  EXPECT_GT(found_, 10);
}

/// As versions of SQLite do that read a long value without its whole pages.
TEST_F(Checksums, find_damage_when_a_part_of_a_page_is_read) {
  const std::size_t page = pages_->count() / 2;
  pages_->bytes[pages_->begin(page) + 9000] ^= 1;
  write_copy(pages_->bytes);
  auto connection = Connection::open_to_read(copy());
  ASSERT_TRUE(connection);
  sqlite3_file* opened = nullptr;
  ASSERT_EQ(sqlite3_file_control(connection->get(), nullptr, SQLITE_FCNTL_FILE_POINTER, &opened), SQLITE_OK);
  for (int i = 0; i < 2000; ++i) {
    const std::size_t of = i % 2 == 0 ? page : 1 + below(random_, pages_->count());
    const std::size_t begin = below(random_, pages_->page_bytes - 101) + (of == 1 ? 100 : 0);
    const std::size_t length = 1 + below(random_, pages_->page_bytes - begin);
    std::string part(length, 'x');
    const std::size_t at = pages_->begin(of) + begin;
    const int code =
        opened->pMethods->xRead(opened, part.data(), static_cast<int>(length), static_cast<sqlite3_int64>(at));
    ASSERT_EQ(code, of == page ? SQLITE_IOERR_DATA : SQLITE_OK) << of;
    ASSERT_TRUE(of == page || part == pages_->bytes.substr(at, length));
  }
  EXPECT_EQ(connection->mismatched_page(), "page " + std::to_string(page) + " does not match its checksum");
}

/// A daemon that died within a transaction; then somebody looks with the tool sqlite3, which rolls back.
TEST_F(Checksums, are_right_after_another_sqlite_has_rolled_back) {
  auto connection = Connection::open(file());
  ASSERT_TRUE(connection);
  const std::string change = "UPDATE device_minute SET measured = measured + 1; UPDATE drive SET state = NULL;";
  ASSERT_TRUE(connection->execute("PRAGMA journal_mode = PERSIST; BEGIN; " + change + " COMMIT"));
  const auto before = rows("SELECT sum(measured) FROM device_minute");
  ASSERT_TRUE(connection->execute("BEGIN; " + change +
                                  "INSERT INTO spike_seconds SELECT NULL, begin_ms, end_ms, "
                                  "device, excess_seconds, seconds, measured FROM spike_seconds"));
  ASSERT_EQ(sqlite3_db_cacheflush(connection->get()), SQLITE_OK);
  write_copy(PagesOfFile(file()).bytes);
  std::filesystem::copy_file(file() + "-journal", copy() + "-journal");
  EXPECT_TRUE(PagesOfFile(copy()).mismatched().empty()) << "nor do they wait for the end of the transaction";
  ASSERT_TRUE(connection->execute("ROLLBACK"));
  std::filesystem::copy_file(copy(), file(), std::filesystem::copy_options::overwrite_existing);
  std::filesystem::copy_file(copy() + "-journal", file() + "-journal",
                             std::filesystem::copy_options::overwrite_existing);
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(file().c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "SELECT 1 FROM device", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(other);
  EXPECT_EQ(rows("SELECT sum(measured) FROM device_minute"), before) << "it has rolled back";
  EXPECT_TRUE(PagesOfFile(file()).mismatched().empty());
  EXPECT_TRUE(open(file(), true));
}

TEST_F(Checksums, are_named_where_they_are_missing_or_do_not_match) {
  std::string content = pages_->bytes;
  content[20] = 0;
  write_copy(content);
  EXPECT_EQ(open(copy(), true).error().message, "has pages without checksums");
  content = pages_->bytes;
  content[pages_->begin(5) + 5000] ^= 1;
  write_copy(content);
  EXPECT_EQ(open(copy(), true).error().message, "is damaged: page 5 does not match its checksum");
  content = pages_->bytes;
  content[200] ^= 1;
  write_copy(content);
  EXPECT_EQ(open(copy(), true).error().message, "page 1 does not match its checksum");
}

}  // namespace
}  // namespace ssdpulse::history
