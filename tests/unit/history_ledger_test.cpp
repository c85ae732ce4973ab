// SPDX-License-Identifier: Apache-2.0
// Is every row accounted for, and is what a file says of itself corrected where its rows say otherwise?
#include <fmt/format.h>

#include <limits>

#include "tests/unit/history_rig.h"

namespace ssdpulse::history {
namespace {

constexpr int kMinutes = 200;

model::DeviceMinute minute_of(model::Minute minute) {
  model::DeviceMinute row;
  row.device = {"wwid 1", "sda", "Model", "Serial"};
  row.minute = minute;
  row.load.measured_ms = 60'000;
  row.load.operations[0].ios = 1;
  row.tenants = {{"a.service", {}}};
  return row;
}

/// A history of some hours, that was closed.
void fill(Rig& rig) {
  History& history = rig.start();
  for (int i = 0; i < kMinutes; ++i) {
    rig.set_now(kBegin + std::chrono::minutes(i));
    model::Batch batch{{row_at(rig.now())}, {}};
    batch.device_minutes = {minute_of(rig.now())};
    history.add(std::move(batch));
    EXPECT_TRUE(rig.wait_rows(2U * static_cast<std::uint64_t>(i + 1)));
  }
  EXPECT_TRUE(history.keep({kBegin, "a mark"}).get().has_value());
  rig.stop();
}

std::string count(const Rig& rig, const std::string& table) { return rig.sql("SELECT count(*) FROM " + table); }

TEST(Account, of_a_file_that_was_left_alone_agrees_with_its_rows) {
  Rig rig;
  fill(rig);
  rig.start();
  rig.expect_works();
  EXPECT_EQ(rig.status().corrections, 0U);
  rig.stop();
  for (const char* table : model::kTables) {
    EXPECT_EQ(rig.sql("SELECT 2 * json_extract(value, '$[0]') - (SELECT sum(value) FROM json_each(tables.value)) FROM "
                      "account, json_each(account.rows) AS tables WHERE tables.key = '" +
                      std::string(table) + "'"),
              count(rig, table))
        << table;
  }
}

// What a wrong number says of the clocks would delete right rows, hide them, or keep new ones out.
TEST(Account, that_is_wrong_costs_no_row) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  for (const char* column : {"measured_ms", "wall", "wall_measured", "drive_minutes_thinned_to", "tenant_bytes",
                             "minutes_reach", "hours_reach"}) {
    for (const std::int64_t value : {-kMost - 1, std::int64_t{-1}, std::int64_t{1} << 40U, kMost / 2, kMost}) {
      Rig rig;
      rig.options().limits.retention = std::chrono::hours(24);
      fill(rig);
      const std::string set = fmt::format("UPDATE account SET {} = {}", column, value);
      rig.sql(set);
      rig.start();
      rig.set_now(rig.now() + 1min);
      model::Batch batch;
      batch.device_minutes = {minute_of(rig.now())};
      rig.running().add(std::move(batch));
      ASSERT_TRUE(rig.wait_rows(1)) << set << ": " << rig.status().reason;
      EXPECT_EQ(rig.status().corrections, 1U) << set;
      EXPECT_EQ(rig.status().reach.minutes, kBegin) << set;
      EXPECT_EQ(rig.recall()->minutes.size(), static_cast<std::size_t>(kMinutes)) << set;
      EXPECT_TRUE(rig.set_aside_files().empty()) << set;
      rig.stop();
      EXPECT_EQ(count(rig, "device_minute"), std::to_string(kMinutes + 1)) << set;
      EXPECT_EQ(count(rig, "mark"), "1") << set;
    }
  }
}

TEST(Account, says_which_rows_another_program_removed_or_added) {
  Rig rig;
  fill(rig);
  rig.sql("DELETE FROM device_minute WHERE rowid IN (SELECT rowid FROM device_minute LIMIT 7)");
  rig.sql("INSERT INTO mark (at_ms, text, measured) VALUES (1, 'forged', 0)");
  rig.start();
  rig.expect_works();
  EXPECT_EQ(rig.status().corrections, 1U);
  constexpr auto kUnreadable = static_cast<std::size_t>(Removal::unreadable);
  EXPECT_EQ(rig.status().rows.at("device_minute").removed.at(kUnreadable), 7U);
  EXPECT_EQ(rig.status().unreadable, (std::map<std::string, std::uint64_t>{{"device_minute", 7}}));
  EXPECT_EQ(rig.status().rows.at("mark").inserted, 1U);
  rig.start();
  rig.expect_works();
  EXPECT_EQ(rig.status().corrections, 0U) << "it is corrected once";
}

std::uint64_t removed(const Rig& rig, const std::string& table, Removal why) {
  return rig.status().rows.at(table).removed.at(static_cast<std::size_t>(why));
}

// The boot clock knows whether a daemon read twice within a minute, or the wall clock showed the minute twice.
TEST(Account, counts_readings_whose_minute_the_wall_clock_showed_again) {
  Rig rig;
  History& history = rig.start();
  model::DriveMinute row = row_at(kBegin);
  for (const auto boottime : {100s, 159s, 219s, 220s}) {
    row.boottime = boottime;
    history.add({{row}, {}});
  }
  ASSERT_TRUE(rig.wait_rows(4));
  EXPECT_EQ(removed(rig, "drive_minute", Removal::clock), 1U);
  EXPECT_EQ(removed(rig, "drive_minute", Removal::repeated), 2U);
  EXPECT_EQ(rig.status().rows.at("drive_minute").present(), 1);
}

TEST(Account, counts_events_whose_place_another_one_takes) {
  Rig rig;
  History& history = rig.start();
  for (const double duration : {1.0, 2.0, 3.0}) {
    model::Batch batch;
    batch.spikes.emplace_back().device = "sda";
    batch.spikes.back().begin = kBegin;
    batch.spikes.back().duration = std::chrono::milliseconds(static_cast<int>(duration * 1000));
    batch.bursts = {{kBegin, "sda", "fstrim", duration, 4096}};
    batch.waits = {{kBegin, "frozen", "/", "", "", duration, "", "x"}};
    history.add(std::move(batch));
  }
  ASSERT_TRUE(rig.wait_rows(9));
  for (const char* table : {"latency_spike", "discard_burst", "host_wait"}) {
    EXPECT_EQ(rig.status().rows.at(table).inserted, 3U) << table;
    EXPECT_EQ(removed(rig, table, Removal::repeated), 2U) << table;
  }
  rig.stop();
  EXPECT_EQ(count(rig, "latency_spike"), "1");
}

TEST(Account, may_have_been_written_before_there_was_a_reason) {
  Rig rig;
  fill(rig);
  rig.sql(
      "UPDATE account SET rows = (SELECT json_group_object(key, json_remove(value, '$[6]')) FROM "
      "json_each(account.rows))");
  ASSERT_EQ(rig.sql("SELECT json_array_length(rows, '$.mark') FROM account"), "6");
  rig.start();
  rig.expect_works();
  EXPECT_EQ(rig.status().corrections, 0U);
  EXPECT_TRUE(rig.set_aside_files().empty());
  EXPECT_EQ(removed(rig, "mark", Removal::clock), 0U);
}

TEST(Account, of_rows_that_is_no_account_makes_a_file_damaged) {
  for (const char* rows :
       {"", "x", "[]", "{\"mark\":1}", "{\"mark\":[1]}", "{\"mark\":[1,2,3,4,-5,6]}", "{\"x\":[1]}"}) {
    Rig rig;
    fill(rig);
    rig.sql(std::string("UPDATE account SET rows = '") + rows + "'");
    rig.start();
    rig.expect_works();
    EXPECT_EQ(rig.set_aside_files().size(), std::string(rows) == "[]" ? 0U : 1U) << rows;
  }
}

}  // namespace
}  // namespace ssdpulse::history
