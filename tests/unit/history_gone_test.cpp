// SPDX-License-Identifier: Apache-2.0
// Do devices that are gone cost the history anything? Thousands of volumes that lived for an hour each, beside one disk
// that is there. Work is counted in steps of SQLite's virtual machine, which need no clock; a statement counts as
// fifty.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/history/history_reader.h"
#include "daemon/history/store.h"
#include "tests/fixtures/temporary_tree.h"
#include "tests/unit/page_oracle.h"

namespace ssdpulse::history {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t kGone = 4000;
constexpr model::Minute kBegin{std::chrono::minutes(29'000'000)};

std::atomic<std::uint64_t> steps = 0;  // of all connections

int count_steps(unsigned /*event*/, void* /*nothing*/, void* statement, void* /*time*/) {
  constexpr std::uint64_t kOfStatement = 50;
  steps += kOfStatement + static_cast<std::uint64_t>(
                              sqlite3_stmt_status(static_cast<sqlite3_stmt*>(statement), SQLITE_STMTSTATUS_VM_STEP, 1));
  return 0;
}

int watch(sqlite3* connection, char** /*error*/, const void* /*thunk*/) {
  return sqlite3_trace_v2(connection, SQLITE_TRACE_PROFILE, count_steps, nullptr);
}

model::DeviceMinute minute_of(const std::string& name, model::Minute minute) {
  model::DeviceMinute row;
  row.device = {"wwid " + name, name, "model", name, "model " + name, name};
  row.minute = minute;
  row.load.operations[0].ios = 1;
  return row;
}

class Gone : public testing::Test {
 protected:
  void SetUp() override {
    sqlite3_auto_extension(reinterpret_cast<void (*)()>(watch));
    std::optional<FileIdentity> checked;
    auto store = Store::open(file(), {}, checked, stop_);
    ASSERT_TRUE(store.has_value());
    store_.emplace(std::move(*store));
    // Two hours, so that the first one has a row of its own.
    write({minute_of("sda", kBegin)}, kBegin);
    write({minute_of("sda", kBegin + 2h)}, kBegin + 2h);
  }
  void TearDown() override { sqlite3_reset_auto_extension(); }

  /// Copies of the disk, under names that come again and again.
  void add_gone() {
    store_.reset();
    sqlite3* connection = nullptr;
    ASSERT_EQ(sqlite3_open(file().c_str(), &connection), SQLITE_OK);
    const std::string numbers =
        "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i <= " + std::to_string(kGone) +
        ") INSERT INTO ";
    const std::string of_first =
        " WHERE at / 4294967296 = 1 AND at % 4294967296 < (SELECT hours_made_to FROM device WHERE id = 1)";
    const std::string sql =
        "BEGIN;" + numbers +
        "device SELECT i, 'wwid v' || i, 'sd' || char(98 + i % 5), 'model', 'v' || i, hours_made_to - 1, "
        "last_measured, "
        "minutes_from, hours_made_to FROM n, device WHERE id = 1;" +
        numbers + "device_minute SELECT at + (i - 1) * 4294967296, load, measured FROM n, device_minute" + of_first +
        ";" + numbers + "device_hour SELECT at + (i - 1) * 4294967296, load, measured FROM n, device_hour" + of_first +
        ";" + numbers + "setting SELECT NULL, 0, 'wwid v' || i, 'scheduler', 'none', 0 FROM n WHERE i <= 400; COMMIT";
    char* error = nullptr;
    ASSERT_EQ(sqlite3_exec(connection, sql.c_str(), nullptr, nullptr, &error), SQLITE_OK) << error;
    sqlite3_close(connection);
    tests::seal(file());
    std::optional<FileIdentity> checked;
    auto store = Store::open(file(), {}, checked, stop_);
    ASSERT_TRUE(store.has_value()) << store.error().message;
    store_.emplace(std::move(*store));
  }

  Store::Written write(std::vector<model::DeviceMinute> rows, model::Minute now) {
    model::Batch batch;
    batch.device_minutes = std::move(rows);
    const auto elapsed = now - std::exchange(now_, now);
    auto written = store_->write(batch, {now, std::max<std::chrono::milliseconds>(elapsed, 0ms)});
    EXPECT_TRUE(written.has_value()) << written.error().message;
    return written.value_or(Store::Written{});
  }

  /// Steps of so many minutes from `begin` on.
  std::uint64_t steps_of(int minutes, model::Minute begin) {
    steps = 0;
    for (int i = 0; i < minutes; ++i) {
      write({minute_of("sda", begin + std::chrono::minutes(i))}, begin + std::chrono::minutes(i));
    }
    return steps;
  }

  [[nodiscard]] std::string file() const { return tree_.path("ssdpulse.db"); }

 private:
  tests::TemporaryTree tree_;
  std::atomic<bool> stop_ = false;
  std::optional<Store> store_;
  model::Minute now_ = kBegin;
};

TEST_F(Gone, devices_cost_a_minute_nothing) {
  const std::uint64_t alone = steps_of(60, kBegin + 3h);
  add_gone();
  steps_of(1, kBegin + 5h);  // the first write after a start goes through all of them
  const std::uint64_t most = steps_of(60, kBegin + 5h + 1min);
  const double of_one = static_cast<double>(most - alone) / kGone;
  std::cout << "an hour of a disk: " << alone << " steps; of a device that is gone: " << of_one << "\n";
  EXPECT_LT(of_one, 1200) << "a few times in an hour";
  EXPECT_LT(steps_of(10, kBegin + 6h + 5min), alone) << "and in most minutes none";
}

TEST_F(Gone, devices_go_all_the_same) {
  add_gone();
  const auto two_weeks = kBegin + std::chrono::days(14) + 4h;
  RowLedger rows;
  const auto add = [&](const Store::Written& written) {
    rows += written.rows;
    return written.reach;
  };
  add(write({minute_of("sda", two_weeks)}, two_weeks));
  model::PastReach reach;
  for (int i = 1; i <= 40; ++i) {
    reach = add(write({minute_of("sda", two_weeks + std::chrono::minutes(i))}, two_weeks + std::chrono::minutes(i)));
  }
  EXPECT_EQ(rows.at("device_minute").all_removed(), static_cast<std::uint64_t>(kGone) + 2)
      << "their minutes became hours";
  EXPECT_EQ(reach.minutes, two_weeks) << "which the reach shows";
  EXPECT_EQ(reach.hours, kBegin - 20min);
  const auto quarter = kBegin + std::chrono::days(91);
  for (int i = 0; i <= 40; ++i) {
    add(write({minute_of("sda", quarter + std::chrono::minutes(i))}, quarter + std::chrono::minutes(i)));
  }
  EXPECT_GE(rows.at("device_hour").all_removed(), static_cast<std::uint64_t>(kGone)) << "and their hours went";
}

TEST_F(Gone, devices_are_not_opened_to_find_the_one_that_has_a_name) {
  add_gone();
  const auto reader = Reader::open(file()).value();
  steps = 0;
  const auto devices = reader->devices_called({"sda", "sdb", "sdz"});
  const double of_one = static_cast<double>(steps) / kGone;
  ASSERT_TRUE(devices.has_value()) << devices.error().message;
  EXPECT_EQ(devices->size(), 2U);
  EXPECT_LT(of_one, 60) << "its name alone is read";
  steps = 0;
  std::uint64_t left_out = 0;
  constexpr std::size_t kLeftOut = static_cast<std::size_t>(kGone) + 1 - Reader::kMaxDevices;
  EXPECT_EQ(reader->devices(&left_out)->size(), Reader::kMaxDevices);
  EXPECT_EQ(left_out, kLeftOut);
  EXPECT_GT(steps, 4 * 60U * Reader::kMaxDevices) << "as against those that are listed";
  steps = 0;
  ASSERT_TRUE(reader->series("sda", {kBegin - 1h, kBegin + 1h}, 60));
  EXPECT_LT(static_cast<double>(steps) / kGone, 60) << "nor to show it";
}

}  // namespace
}  // namespace ssdpulse::history
