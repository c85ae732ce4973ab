// SPDX-License-Identifier: Apache-2.0
// Does everything survive that a damaged page does not hold, and is every row that does not survive counted?
#include <cstdlib>
#include <map>
#include <random>
#include <set>

#include "daemon/history/file_tools.h"
#include "daemon/history/history_reader.h"
#include "tests/unit/history_rig.h"
#include "tests/unit/page_oracle.h"

namespace ssdpulse::history {
namespace {

using tests::PagesOfFile;
using Content = std::map<std::string, std::multiset<std::string>>;  // by table: rows as text

/// Some hours of everything, and values that fill several pages.
void fill(Rig& rig) {
  constexpr int kMinutes = 400;
  History& history = rig.start();
  std::uint64_t rows = 0;
  for (int i = 0; i < kMinutes; ++i) {
    rig.set_now(kBegin + std::chrono::minutes(i));
    model::Batch batch{{row_at(rig.now())}, {}};
    for (const char* name : {"sda", "sdb", "sdc"}) {
      model::DeviceMinute row;
      row.device = {std::string("wwid of ") + name, name, "Model", "Serial"};
      row.minute = rig.now();
      row.load.measured_ms = 60'000;
      row.load.operations[0].ios = static_cast<std::uint64_t>(i);
      row.load.latency(model::Latency::read_total) = {{{100, static_cast<std::uint64_t>(i + 1)}, {200, 1}}, 7};
      row.tenants = {{"a.service", {}}};
      batch.device_minutes.push_back(std::move(row));
    }
    if (i % 10 == 0) {
      batch.bursts = {{rig.now(), "sda", "fstrim", 1, 4096}};
      batch.settings = {{"", "vm.swappiness", std::to_string(i)}};
      batch.at = rig.now();
      batch.spike_seconds = {
          {"sda", rig.now(), rig.now() + 10s, 1.0 + i, model::Bytes(50'000, static_cast<std::uint8_t>(i))}};
      batch.states = {{kDrive, model::Bytes(200'000, static_cast<std::uint8_t>(i))}};
    }
    rows += batch.rows();
    history.add(std::move(batch));
    ASSERT_TRUE(rig.wait_rows(rows));
    if (i % 25 == 0) {
      ASSERT_TRUE(history.keep({rig.now(), "mark " + std::to_string(i)}).get().has_value());
      ++rows;
    }
  }
  rig.stop();
}

/// With the test's own SQLite, which knows of no checksums: of a whole file.
Content content_of_tables(const std::string& path) {
  sqlite3* handle = nullptr;
  EXPECT_EQ(sqlite3_open(path.c_str(), &handle), SQLITE_OK);
  Content content;
  for (const char* table : model::kTables) {
    const auto add = [](void* out, int columns, char** values, char**) {
      std::string row;
      for (int i = 0; i < columns; ++i) {
        row += (values[i] == nullptr ? std::string("NULL") : std::string(values[i])) + "|";
      }
      static_cast<std::multiset<std::string>*>(out)->insert(row);
      return 0;
    };
    std::string columns = "SELECT * FROM " + std::string(table);
    for (const auto& [with_blob, quoted] : std::map<std::string, std::string>{
             {"device_minute", "at, hex(load), measured"},
             {"device_hour", "at, hex(load), measured"},
             {"tenant_minute", "at, hex(tenants), measured"},
             {"tenant_hour", "at, hex(tenants), measured"},
             {"drive", "id, serial, length(state), hex(substr(state, -8))"},
             {"drive_minute", "minute, drive, measured, hex(host_count), hex(media_count), discard_bytes"},
             {"spike_seconds", "id, begin_ms, excess_seconds, length(seconds), hex(substr(seconds, -8))"}}) {
      if (with_blob == table) {
        columns = "SELECT " + quoted + " FROM " + table;
      }
    }
    char* error = nullptr;
    sqlite3_exec(handle, columns.c_str(), add, &content[table], &error);
    EXPECT_EQ(error, nullptr) << error << ": " << columns;
    sqlite3_free(error);
  }
  sqlite3_close(handle);
  return content;
}

void damage(const std::string& path, std::size_t at, const std::string& bytes) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(at));
  file << bytes;
}

/// What `whole` has and `left` does not; `left` has nothing else.
std::map<std::string, std::uint64_t> lost(const Content& whole, const Content& left) {
  std::map<std::string, std::uint64_t> lost;
  for (const auto& [table, rows] : whole) {
    const auto& there = left.at(table);
    EXPECT_TRUE(std::includes(rows.begin(), rows.end(), there.begin(), there.end())) << table << " has another row";
    if (rows.size() > there.size()) {
      lost[table] = rows.size() - there.size();
    }
  }
  return lost;
}

class Damaged : public ::testing::Test {
 protected:
  void SetUp() override {
    fill(rig_);
    whole_ = content_of_tables(rig_.file());
    pages_.emplace(rig_.file());
    std::filesystem::copy_file(rig_.file(), copy());
  }
  [[nodiscard]] std::string copy() const { return rig_.directory() + "/copy"; }
  [[nodiscard]] std::string saved() const { return rig_.directory() + "/saved"; }

  Rig rig_;
  Content whole_;
  std::optional<PagesOfFile> pages_;
  const std::atomic<bool> never_ = false;
};

TEST_F(Damaged, files_lose_what_their_damaged_page_held_and_count_it) {
  std::mt19937 random(1);  // NOLINT(cert-msc51-cpp): each run damages the same pages
  std::uint64_t rows_lost = 0;
  std::uint64_t most_lost = 0;
  std::uint64_t rows = 0;
  for (const auto& [table, there] : whole_) {
    rows += there.size();
  }
  const auto unused = pages_->unused();
  int damaged = 0;
  const char* is_long = std::getenv("SSDPULSE_TEST_LONG");
  const std::size_t step = is_long != nullptr && *is_long == '1' ? 1 : 6;
  for (std::size_t page = 2; page <= pages_->count(); page += step) {
    if (unused.count(page) > 0) {
      continue;
    }
    const std::size_t at = pages_->begin(page) + random() % (pages_->page_bytes / 512) * 512;
    damage(copy(), at, std::string(512, '\0'));
    const bool changed = PagesOfFile(copy()).mismatched().count(page) > 0;  // not where there were zeros
    const auto salvaged = salvage(copy(), saved(), never_);
    ASSERT_TRUE(salvaged.has_value()) << "page " << page << ": " << salvaged.error().message;
    const auto missing = lost(whole_, content_of_tables(saved()));
    EXPECT_EQ(salvaged->lost, missing) << "page " << page;
    EXPECT_TRUE(changed || missing.empty()) << "page " << page;
    std::uint64_t of_page = 0;
    for (const auto& [table, count] : missing) {
      of_page += count;
    }
    rows_lost += of_page;
    most_lost = std::max(most_lost, of_page);
    const auto report = check_file(saved());
    EXPECT_TRUE(report && report->problems.empty()) << "page " << page;
    std::filesystem::remove(saved());
    damage(copy(), at, pages_->bytes.substr(at, 512));
    damaged += changed ? 1 : 0;
  }
  std::cout << damaged << " damaged pages of " << pages_->count() << ": on average "
            << static_cast<double>(rows_lost) / damaged << " of " << rows << " rows lost, at most " << most_lost
            << "\n";
  ASSERT_GT(damaged, 20);
  EXPECT_LT(static_cast<double>(rows_lost) / damaged, 0.1 * static_cast<double>(rows)) << "with their neighbours";
}

TEST_F(Damaged, files_that_have_nothing_to_save_leave_nothing) {
  damage(copy(), 200, "x");  // the schema is in the first page
  EXPECT_FALSE(salvage(copy(), saved(), never_).has_value());
  damage(copy(), 0, "nothing of ours");
  EXPECT_FALSE(salvage(copy(), saved(), never_).has_value());
  EXPECT_FALSE(salvage(rig_.directory() + "/nowhere", saved(), never_).has_value());
  EXPECT_FALSE(std::filesystem::exists(saved()));
  EXPECT_FALSE(std::filesystem::exists(saved() + "-journal"));
}

/// What a kill within a transaction leaves: pages that are overwritten already, and a journal that says what they were.
void cut_off_a_transaction(const std::string& path, const std::string& to) {
  sqlite3* handle = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &handle), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(handle,
                         "PRAGMA cache_size = 1; BEGIN; UPDATE device_minute SET measured = measured + 1; DELETE FROM "
                         "spike_seconds",
                         nullptr, nullptr, nullptr),
            SQLITE_OK);
  std::filesystem::copy_file(path, to, std::filesystem::copy_options::overwrite_existing);
  std::filesystem::copy_file(path + "-journal", to + "-journal");
  sqlite3_close(handle);
}

// A reader may not undo it; a command shall not say that the file is read-only.
TEST_F(Damaged, is_no_file_whose_writer_was_killed_within_a_transaction) {
  cut_off_a_transaction(rig_.file(), copy());
  const std::string before = content_of(copy());
  const std::string journal = content_of(copy() + "-journal");
  ASSERT_NE(before, content_of(rig_.file()));
  const auto asked = Reader::open(copy()).value()->devices();
  ASSERT_FALSE(asked.has_value());
  EXPECT_NE(asked.error().message.find("killed within a transaction"), std::string::npos) << asked.error().message;
  const auto report = check_file(copy());
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_TRUE(report->undone);
  EXPECT_TRUE(report->problems.empty()) << report->problems.front();
  EXPECT_EQ(report->rows.at("mark"), whole_.at("mark").size());
  const auto salvaged = salvage_file(copy(), saved());
  ASSERT_TRUE(salvaged.has_value()) << salvaged.error().message;
  EXPECT_EQ(*salvaged, "none");
  EXPECT_TRUE(lost(whole_, content_of_tables(saved())).empty());
  std::filesystem::remove(saved());
  const auto backed_up = back_up(copy(), saved(), [](double) {});
  ASSERT_TRUE(backed_up.has_value()) << backed_up.error().message;
  EXPECT_TRUE(lost(whole_, content_of_tables(saved())).empty());
  EXPECT_FALSE(check_file(saved()).value().undone);
  EXPECT_TRUE(before == content_of(copy()) && journal == content_of(copy() + "-journal")) << "they only read it";
  for (const auto& entry : std::filesystem::directory_iterator(rig_.directory())) {
    EXPECT_EQ(entry.path().string().find(".undone-"), std::string::npos) << entry.path();
  }
}

TEST_F(Damaged, check_reports_why_a_transaction_cannot_be_undone) {
  cut_off_a_transaction(rig_.file(), copy());
  ::setenv("TMPDIR", (rig_.directory() + "/nowhere").c_str(), 1);
  const auto report = check_file(copy());
  ::setenv("TMPDIR", "/dev/shm", 1);
  ASSERT_FALSE(report.has_value());
  EXPECT_NE(report.error().message.find("/nowhere/ssdpulse-check-"), std::string::npos) << report.error().message;
}

// Nobody knows whose the rows are, but they are nobody else's.
TEST_F(Damaged, files_that_lost_their_devices_give_no_number_out_again_and_make_no_hour_twice) {
  const auto root =
      static_cast<std::size_t>(std::stoul(rig_.sql("SELECT rootpage FROM sqlite_schema WHERE name = 'device'")));
  damage(rig_.file(), pages_->begin(root) + pages_->page_bytes - 600, std::string(500, 'x'));
  rig_.start();
  rig_.expect_works();
  EXPECT_EQ(rig_.status().unreadable.at("device"), 3U);
  EXPECT_EQ(rig_.status().rows.at("device").removed.at(static_cast<std::size_t>(Removal::unreadable)), 3U);
  for (int i = 0; i < 130; ++i) {
    rig_.set_now(rig_.now() + 1min);
    model::Batch batch;
    model::DeviceMinute row;
    row.device = {"wwid of sdx", "sdx", "Model", "Serial"};
    row.minute = rig_.now();
    row.load.measured_ms = 60'000;
    batch.device_minutes = {row};
    rig_.running().add(std::move(batch));
  }
  ASSERT_TRUE(rig_.wait_rows(132));
  rig_.stop();
  EXPECT_EQ(rig_.sql("SELECT count(*) FROM device WHERE name LIKE 'lost-%'"), "3");
  EXPECT_EQ(rig_.sql("SELECT min(id) > 3 FROM device WHERE name = 'sdx'"), "1");
  EXPECT_EQ(rig_.sql("SELECT count(*) FROM device_minute WHERE at / 4294967296 <= 3"), "1200");
  const Content after = content_of_tables(rig_.file());
  const auto& hours = whole_.at("device_hour");
  const auto& now = after.at("device_hour");
  EXPECT_TRUE(std::includes(now.begin(), now.end(), hours.begin(), hours.end())) << "as they were";
  EXPECT_TRUE(check_file(rig_.file()).value().problems.empty());
}

TEST_F(Damaged, files_that_lost_their_account_keep_their_rows) {
  for (const char* edit :
       {"UPDATE account SET rows = 'x'", "UPDATE account SET rows = '{\"mark\":[9223372036854775807,0,0,0,0,0]}'",
        "UPDATE account SET rows = '[]'"}) {
    rig_.sql(edit);
    std::filesystem::remove(saved());
    const auto salvaged = salvage(rig_.file(), saved(), never_);
    ASSERT_TRUE(salvaged.has_value()) << edit << salvaged.error().message;
    EXPECT_TRUE(lost(whole_, content_of_tables(saved())).empty()) << edit;
    EXPECT_TRUE(check_file(saved()).value().problems.empty()) << edit;
  }
}

TEST_F(Damaged, files_that_end_too_early_lose_only_what_is_behind) {
  std::filesystem::resize_file(copy(), pages_->begin(pages_->count() / 2) + 100);
  const auto salvaged = salvage(copy(), saved(), never_);
  ASSERT_TRUE(salvaged.has_value()) << salvaged.error().message;
  const Content left = content_of_tables(saved());
  std::size_t rows = 0;
  for (const auto& [table, there] : left) {
    rows += there.size();
  }
  EXPECT_EQ(salvaged->lost, lost(whole_, left));
  EXPECT_GT(rows, 100U);
}

// The writer never reads old rows again: whoever reads them has it find the damage.
TEST_F(Damaged, files_are_replaced_by_what_is_readable_in_them_while_the_history_runs) {
  rig_.start();
  rig_.expect_works();
  const auto reader = Reader::open(rig_.file(), [&] { rig_.running().suspect(); }).value();
  const auto of_sda = [&] { return reader->minutes("sda", {kBegin - 1h, kBegin + std::chrono::hours(24)}); };
  ASSERT_EQ(of_sda().value().size(), 400U);
  const PagesOfFile pages(rig_.file());
  const auto unused = pages.unused();
  for (std::size_t page = pages.count(); page > 1 && rig_.status().files_set_aside == 0; --page) {
    if (unused.count(page) > 0 || pages.bytes[pages.begin(page)] != '\x0D') {  // not a leaf of a table
      continue;
    }
    const std::size_t at = pages.begin(page) + pages.page_bytes - 600;
    damage(rig_.file(), at, std::string(512, 'x'));
    if (of_sda()) {
      damage(rig_.file(), at, pages.bytes.substr(at, 512));
    } else {
      rig_.wait([](const Status& status) { return status.files_set_aside > 0; });
    }
  }
  ASSERT_EQ(rig_.status().files_set_aside, 1U);
  rig_.start();
  rig_.expect_works();
  std::uint64_t unreadable = 0;
  for (const auto& [table, rows] : rig_.status().unreadable) {
    unreadable += rows;
  }
  EXPECT_GT(unreadable, 0U);
  EXPECT_LT(unreadable, 600U);
  rig_.set_now(rig_.now() + std::chrono::hours(25));
  rig_.expect_works();
  EXPECT_TRUE(rig_.status().unreadable.empty()) << "that was more than a day ago";
  rig_.start();
  rig_.expect_works();
  EXPECT_TRUE(rig_.status().unreadable.empty()) << "a restart does not make it recent";
  rig_.stop();
  EXPECT_GT(content_of_tables(rig_.file())["device_minute"].size(), 600U) << "of 1200";
}

}  // namespace
}  // namespace ssdpulse::history
